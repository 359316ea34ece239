"""Tasks whose corpora come with blanks, from the command to the tables, and the paper's sample templates."""

import json
import re

import pytest

from experiments import collect, grimm, run_all, samples
from experiments.cells import flags
from experiments.cells.setting import TASKS
from experiments.tables import paper
from experiments.tables.table import NOT_RUN
from text_infilling.corpora import masked_corpora
from text_infilling.inference.infiller import Infiller
from text_infilling.training.evaluation import PAPER_BATCH

TINY = [
    "--set=decoder.dim=16", "--set=decoder.num_blocks=1", "--set=decoder.num_heads=2", "--set=decoder.ffn_dim=16",
    "--epochs=1", "--batch_size=20",
]  # fmt: skip


def parse(define, *arguments):
    return flags.parse(arguments, define)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A folder in which a tiny self-attention model was trained on 60 pairs, and the output of the command."""
    folder = tmp_path_factory.mktemp("grimm")
    (folder / "data" / "grimm").mkdir(parents=True)
    for split, first in (("train", 0), ("test", 60)):
        rows = [
            {"template": "<m> king <m> went <m>", "expected": f"the old king number {i} went home and slept ."}
            for i in range(first, first + 60)
        ]
        path = folder / "data" / "grimm" / f"lm.{split}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXT_INFILLING_DATA", str(folder / "cache"))
        printed = []
        patch.setattr("builtins.print", lambda *values, **_: printed.append(" ".join(map(str, values))))
        arguments = [
            "--preset=smoke", "--corpus=grimm", f"--data_dir={folder}/data", *TINY,
            "--models=template,self_attention", f"--workdir={folder}/runs",
        ]  # fmt: skip
        grimm.run(parse(grimm.define_flags, *arguments))
        yield folder, "\n".join(printed)


def test_the_row_is_printed_with_the_papers_numbers(ran):
    _, printed = ran
    assert "Corpus: Grimm's tales and NBA reports (the authors' pairs, data_dir); masking pairs" in printed
    perplexity = next(line for line in printed.splitlines() if "Perplexity" in line and "paper  " in line)
    assert perplexity.split()[-3:] == ["10.411", "11.784", "9.647"]
    assert "true answers have 2.667 words" in printed
    assert "filled    [" in printed and "truth     [the old] king [number 60] went [home and slept .]" in printed


def test_the_cell_is_named_after_its_pairs_and_stores_metrics_and_config(ran):
    folder, _ = ran
    (cell,) = (folder / "runs" / "grimm").glob("*self_attention*")
    assert cell.name == "grimm.pairs.blanks3.self_attention.paper.smoke.seed1"
    assert json.loads((cell / "config.json").read_text("utf-8"))["answers"] == {"empty": False}
    metrics = json.loads((cell / "metrics.json").read_text("utf-8"))
    assert metrics["sentences"] == 60 and metrics["mean_answer_length"] == pytest.approx(8 / 3)
    assert {"bleu", "bleu_paper", "ppl", "ppl_paper", "ppl_words", "repeating_infills"} <= metrics.keys()
    config = json.loads((cell / "config.json").read_text("utf-8"))
    assert config["cell"]["mask_rate"] is None and config["hparams"]["train"]["min_count"] == 1


def test_the_cell_records_its_training_and_the_table_shows_it(ran):
    folder, printed = ran
    (cell,) = (folder / "runs" / "grimm").glob("*self_attention*")
    timing = json.loads((cell / "timing.json").read_text("utf-8"))
    assert timing["epochs"] == 1 and timing["parameters"] > 0 and timing["train_tflop"] > 0
    assert timing["processor"] and timing["commit"] and timing["cores"] >= 1
    assert timing["gemm_gflops_before"] > 0 and timing["gemm_gflops_after"] > 0
    row = next(line for line in printed.splitlines() if re.search(r"Self-attn +- +Adam", line))  # no budget
    assert f"{timing['parameters']:,}" in row and row.endswith("(a)") and f"(a) {timing['processor']}" in printed


def test_ppl_paper_uses_the_authors_test_batch_sizes():
    assert PAPER_BATCH == {"yelp": 10, "grimm": 150, "prepositions": 150, "nba": 200}


def test_the_vocabulary_includes_the_words_of_the_test_split(ran):
    folder, _ = ran
    words = next((folder / "runs").glob("grimm/*self_attention*/vocabulary.txt")).read_text("utf-8").split()
    assert {"0", "59", "60", "119"} <= set(words)


def test_the_papers_table_is_made_from_the_cell_and_indexed(ran, tmp_path, capsys):
    folder, _ = ran
    collect.run(parse(flags.define_collect, f"--cells={folder}/runs/grimm", f"--results_dir={tmp_path}"))
    page = (tmp_path / "long_content" / "long_content.pairs.paper.smoke.long_content.md").read_text("utf-8")
    assert "# Long content table: Grimm's tales, NBA reports" in page and "| Task |" in page
    assert page.count("not run") > 10  # the other models, and NBA
    index = (tmp_path / "README.md").read_text("utf-8")
    assert "(long_content/long_content.pairs.paper.smoke.long_content.md)" in index and "Not made yet." in index


def test_the_papers_samples_are_filled_by_the_trained_models(ran, tmp_path):
    folder, _ = ran
    values = parse(
        samples.define_flags, f"--workdir={folder}/runs", "--preset=smoke", f"--results_dir={tmp_path}",
    )  # fmt: skip
    samples.run(values)
    page = (tmp_path / "samples.paper.smoke.md").read_text("utf-8")
    assert all(template.replace("<m>", "____") in page for _, template in samples.TEMPLATES)
    filled = [line for line in page.splitlines() if line.startswith("| Self-attn") and NOT_RUN not in line]
    assert (
        len(filled) == 2 and "sound" in filled[0] and "water" in filled[1]
    )  # Grimm's templates; the other tasks were not trained
    assert "| | ours |" in page and "paper |" not in page  # no column of the paper without --paper_tex
    tex = (tmp_path / "samples.paper.smoke.tex").read_text("utf-8")
    assert r"\multicolumn{1}{l}" in tex
    cell = "grimm.pairs.blanks3.self_attention.paper.smoke.seed1"  # the cell that filled them is named
    assert page.endswith(f"## Cells\n\n- `{cell}`\n") and tex.endswith(f"% cell: {cell}\n")
    assert "(samples.paper.smoke.md)" in (tmp_path / "README.md").read_text("utf-8")


def test_templates_are_filled_as_in_the_tables(monkeypatch):
    """Infills may be empty and may repeat words, unlike those of `text-infill fill`."""
    given = []

    class Recorder:
        def fill(self, texts, **options):
            given.append((texts, options))
            return []

    monkeypatch.setattr(Infiller, "load", lambda folder: Recorder())
    assert samples._fills("a cell", []) == []
    assert given == [([], {"limits": {"min_words": 0}, "no_repeat_ngram": 0})]


def test_run_all_writes_the_samples_too(ran, tmp_path, monkeypatch):
    folder, _ = ran
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(folder / "cache"))
    arguments = [
        "--preset=smoke", "--corpus=paper", f"--data_dir={folder}/data", *TINY, "--only=grimm", "--jobs=1",
        "--models=template,self_attention", f"--workdir={folder}/runs", f"--results_dir={tmp_path}",
    ]  # fmt: skip
    assert run_all.run(parse(run_all.define_flags, *arguments)) == 0  # the finished cells are not run again
    assert "sound" in (tmp_path / "samples.paper.smoke.md").read_text("utf-8")


def test_without_a_trained_cell_samples_are_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"no finished cell of protocol paper, preset laptop, seed 1 in .*--workdir"):
        samples.run(parse(samples.define_flags, f"--workdir={tmp_path}", f"--results_dir={tmp_path}"))


def test_the_papers_filled_sentences_are_read_from_its_source(shared):
    found = samples.of_paper((shared / "paper" / "text_infilling.tex").read_text("utf-8"))
    for _, template in samples.TEMPLATES:
        assert found[template].keys() == {"truth", "seq2seq", "gan", "self_attention"}
        kept = [word for word in template.split() if word != "<m>"]
        for sentence in found[template].values():
            assert [word for word in kept if word in sentence] == kept and "\\" not in sentence


def test_a_wrong_paper_source_is_an_error_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="--paper_tex is not the paper's source"):
        samples.of_paper(r"\textbf{Template} & something else \\")
    arguments = ["--preset=smoke", f"--workdir={tmp_path}/runs", f"--results_dir={tmp_path}/results"]
    with pytest.raises(OSError, match="nowhere.tex"):
        run_all.run(parse(run_all.define_flags, *arguments, f"--paper_tex={tmp_path}/nowhere.tex"))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("--masking=fixed", "anchors_noun_verb"),
        ("--masking=mymodule:", "module:function"),
        ("--corpus=yelp", "--corpus=yelp"),
        ("--mask_rate=0.4", "mask_rate"),
    ],
)
def test_a_bad_flag_is_named(argument, named):
    with pytest.raises(flags.flags.Error) as error:
        parse(grimm.define_flags, argument)
    assert named in str(error.value)


def test_every_task_has_a_table_and_a_source():
    keys = {key.task for made in paper.TABLES.values() for settings in made.values() for key in settings}
    assert keys == TASKS.keys() == {"yelp", *masked_corpora.SOURCES}
