"""The benchmarks run and print the documented values; speed itself is not tested."""

import contextlib
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import common, decode, fill, pipeline, tables, train_step
from text_infilling.data.blank_rule import BlankRule
from text_infilling.data.pipeline import Pipeline, split_stats
from text_infilling.models.registry import MODELS, built_model
from text_infilling.training.cost import flop_per_sentence
from text_infilling.utils import files

ROOT = Path(__file__).resolve().parents[2]
TINY = [
    "--corpus=synthetic", "--settings=40%/2", "--batch_size=20", "--json", "--set=decoder.dim=16",
    "--set=decoder.num_blocks=1", "--set=decoder.num_heads=2", "--set=decoder.ffn_dim=32",
]  # fmt: skip
COMMANDS = {
    "train_step": ["--preset=full", "--steps=2", "--warmup_steps=1"],
    "decode": ["--steps=1", "--train_steps=2"],
    "pipeline": ["--steps=3", "--masking=random", "--training_rate=10"],
}
KEYS = {"benchmark", "model", "setting", "sentences_per_s", "gflops", "gemm_gflops", "ratio", "peak_mib"}


def printed_here(benchmark, *flags):
    """Returns the rows that a benchmark prints; it runs in this process, and so do its measurements."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), pytest.raises(SystemExit) as exit_:
        patch.setattr(common, "isolated", lambda function, *arguments: function(*arguments))
        common.main(benchmark.new_parser(), benchmark.rows_of, benchmark.COLUMNS, flags)
    assert not exit_.value.code
    return [json.loads(line) for line in out.getvalue().splitlines()]


def printed_by_command(name, *flags):
    """Returns the rows that a benchmark prints; it runs as a command, and measures in a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The row that each benchmark prints."""
    folder = tmp_path_factory.mktemp("benchmarks")
    common.make_task(train_step.new_parser().parse_args(TINY), common.Setting(0.4, 2), HPARAMS)  # fills the cache
    found = {
        "train_step": printed_by_command("train_step", *TINY, *COMMANDS["train_step"]),
        "decode": printed_here(decode, *TINY, *COMMANDS["decode"], f"--workdir={folder}/weights"),
        "pipeline": printed_here(pipeline, *TINY, *COMMANDS["pipeline"]),
    }
    assert list(folder.glob("weights/decode.synthetic.*/best.weights.h5"))
    return {name: row for name, (row,) in found.items()}


HPARAMS = common.hparams_of(train_step.new_parser().parse_args(TINY))


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_row_names_what_was_measured_and_on_which_corpus(rows, name):
    row = rows[name]
    assert set(row) >= KEYS
    assert (row["benchmark"], row["setting"], row["corpus"]) == (name, "40%/2", "synthetic")
    assert row["model"] == (None if name == "pipeline" else "self_attention")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_numbers_are_finite_and_positive(rows, name):
    row = rows[name]
    numbers = ["sentences_per_s", "peak_mib"] + ["gflops", "gemm_gflops", "ratio"] * (name != "pipeline")
    assert all(math.isfinite(row[key]) and row[key] > 0 for key in numbers)
    if name == "pipeline":
        assert row["gflops"] is row["gemm_gflops"] is row["ratio"] is None
    else:
        assert row["ratio"] == pytest.approx(row["gflops"] / row["gemm_gflops"])


def test_decoding_reports_computed_and_needed_positions(rows):
    assert rows["decode"]["decoded_positions"] >= rows["decode"]["needed_positions"] >= 1
    assert rows["decode"]["sentences"] == 500


def test_the_pipeline_is_compared_with_the_rate_of_training(rows):
    assert rows["pipeline"]["times_training"] == pytest.approx(rows["pipeline"]["sentences_per_s"] / 10)


def test_filling_is_measured_for_single_texts_and_batches():
    sizes = [flag for flag in TINY if flag.startswith("--set=")]
    rows = printed_here(fill, "--preset=smoke", "--steps=2", "--json", *sizes)
    assert {(row["model"], row["sizes"]) for row in rows} == {("self_attention", "smoke, untrained")}
    assert [row["texts"] for row in rows] == [1, 64, 256]
    for row in rows:
        assert row["words_per_infill"] == 2 and 0 < row["median_ms"] <= row["p90_ms"]
        assert row["sentences_per_s"] == pytest.approx(1000 * row["texts"] / row["median_ms"])
        assert row["first_answer_s"] > 0 and row["peak_mib"] > 100


def test_the_work_of_all_batches_is_the_number_of_sentences_times_that_of_the_mean_sentence(tmp_path):
    task = common.make_task(train_step.new_parser().parse_args(TINY), common.Setting(0.4, 2), HPARAMS)
    some = tmp_path / "some.txt"
    some.write_text("".join(task.corpus.train.read_text("utf-8").splitlines(keepends=True)[:300]), "utf-8")
    model = built_model("self_attention", len(task.vocabulary), HPARAMS)
    batches = Pipeline(some, task.vocabulary, task.blank_rule, model.template_format, 20).training(300, 1, range(1))

    multiply_adds = MODELS["self_attention"].multiply_adds(HPARAMS, len(task.vocabulary))
    total = sum(train_step.batch_flop(multiply_adds, batch) for batch in batches)

    found = split_stats(some, task.blank_rule)
    mean = flop_per_sentence(multiply_adds, found.words / found.lines, found.mask_rate, task.blanks)
    # Not exact: the mean ignores which blank is longer; if it is the first, the second template has more words.
    assert total == pytest.approx(mean * found.lines, rel=5e-3)


@pytest.mark.parametrize(
    ("model", "setting", "gflop"),
    [
        # By hand: 13.44M multiply-adds per answer position, 3.54M for its output, 1.92M per template position.
        ("self_attention", "30%/1", 0.577),
        ("self_attention", "50%/2", 1.073),
        # 12.8M multiply-adds per LSTM step, 14.2M per output position.
        ("seq2seq", "30%/1", 1.62),
        ("seq2seq", "50%/2", 3.06),
    ],
)
def test_the_useful_work_per_yelp_sentence_at_the_papers_sizes(shared, model, setting, gflop):
    (setting,) = common.parse_settings(setting)
    found = split_stats(shared / "data" / "yelp" / "train.txt", BlankRule("fixed", setting.mask_rate, setting.blanks))
    hparams = common.hparams_of(train_step.new_parser().parse_args([f"--model={model}"]))
    multiply_adds = MODELS[model].multiply_adds(hparams, 8857)
    flop = flop_per_sentence(multiply_adds, found.words / found.lines, found.mask_rate, setting.blanks)
    # Within 1%: the mean ignores which blank is longer.
    assert flop / 1e9 == pytest.approx(gflop, rel=1e-2)


def test_useful_positions_of_decoding_are_those_of_infills_and_templates():
    """`can i have a beef burger , please .` with blanks at [0, 2) and [4, 6), filled by 3 and 1 words."""
    words, starts, ends = np.array([9]), np.array([[0, 4]]), np.array([[2, 6]])
    answers, templates = decode.useful_positions(words, np.array([[3, 1]]), starts, ends, max_length=8)
    assert answers == (3 + 1) + (1 + 1)
    before = len("<BOS> <m> have a <m> , please . <EOS>".split())
    after = len("<BOS> x x x have a <m> , please . <EOS>".split())
    assert templates == before + after


def test_an_infill_of_maximum_length_has_no_eob_to_decode():
    answers, _ = decode.useful_positions(np.array([3]), np.array([[4]]), np.array([[1]]), np.array([[2]]), max_length=4)
    assert answers == 4


def test_settings_are_parsed_and_printed_in_the_same_form():
    settings = common.parse_settings("30%/1, 50%/2")
    assert settings == [common.Setting(0.3, 1), common.Setting(0.5, 2)]
    assert ",".join(map(str, settings)) == "30%/1,50%/2"


@pytest.mark.parametrize(
    "flag", ["--settings=30/1", "--settings=0%/1", "--settings=100%/1", "--settings=30%/0", "--steps=0",
             "--preset=huge", "--set=decoder.dims=3", "--batch_size=-1"],
)  # fmt: skip
def test_a_bad_flag_exits_with_code_2_and_is_named(flag, capsys):
    with pytest.raises(SystemExit) as stopped:
        common.main(train_step.new_parser(), train_step.rows_of, train_step.COLUMNS, [flag])
    assert stopped.value.code == 2
    assert flag.split("=")[1].split("/")[0] in capsys.readouterr().err


def test_a_missing_corpus_exits_with_code_1_and_one_line(tmp_path, capsys):
    def rows_of(args):
        yield common.make_task(args, args.settings[0], HPARAMS)

    flags = [f"--data_dir={tmp_path / 'nowhere'}", "--settings=30%/1"]
    with pytest.raises(SystemExit) as stopped:
        common.main(train_step.new_parser(), rows_of, train_step.COLUMNS, flags)
    assert stopped.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "data_dir=" in line


def test_the_table_aligns_the_columns_and_names_the_corpus():
    row = {"benchmark": "pipeline", "sentences_per_s": 1234.5, "ratio": None, "corpus": "c", "corpus_source": "made"}
    lines = common.table(
        [row, {**row, "sentences_per_s": 9.75}], ["benchmark", "sentences_per_s", "ratio"]
    ).splitlines()
    assert lines[0] == "benchmark  sentences_per_s  ratio"
    assert lines[2:] == [
        "pipeline              1234      -",
        "pipeline             9.750      -",
        "corpus c (made)",
    ]


def test_the_tables_in_the_document_match_the_records():
    text = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    made = tables.written(text, ROOT / "results" / "benchmarks")
    assert text == made, "docs/benchmarks.md does not match results/benchmarks. Run: python -m benchmarks.tables"
    names = {path.stem for path in (ROOT / "results" / "benchmarks").glob("*.json")}
    assert set(re.findall(r"<!-- benchmarks:(\w+) -->", text)) == names  # every record is shown


def test_no_table_of_numbers_in_the_document_is_typed_by_hand():
    text = tables.PAIRS.sub("", (ROOT / "docs" / "benchmarks.md").read_text("utf-8"))
    typed = [line for line in text.splitlines() if re.match(r"\|.*\| *[\d.,]+ *\|", line)]
    assert typed == []


def test_a_changed_record_makes_the_document_stale(tmp_path):
    row = {"model": "gan", "ratio": 0.5}
    files.write_json(tmp_path / "a.json", {"source": "made up", "columns": list(row), "rows": [row]})
    text = tables.written("<!-- benchmarks:a -->\n<!-- /benchmarks:a -->\n", tmp_path)
    assert "| gan | 0.500 |" in text and tables.written(text, tmp_path) == text
    files.write_json(tmp_path / "a.json", {"source": "made up", "columns": list(row), "rows": [row | {"ratio": 0.75}]})
    assert "| gan | 0.750 |" in tables.written(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("<!-- benchmarks:a -->\n", ValueError, "unpaired <!-- benchmarks:a -->"),
        ("<!-- benchmarks:a -->\n<!-- /benchmarks:a -->\n", OSError, "a.json"),
    ],
)
def test_wrong_markers_and_missing_records_are_named(tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        tables.written(text, tmp_path)


def test_a_record_names_command_code_and_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "isolated", lambda function: 100.0)
    monkeypatch.setattr(sys, "argv", ["benchmarks/pipeline.py"])
    path = tmp_path / "new" / "pipeline.json"
    arguments = [f"--out={path}", "--data_dir=/some/folder"]
    row = {"benchmark": "pipeline", "sentences_per_s": 5.0}
    with pytest.raises(SystemExit) as exit_:
        common.main(common.new_parser(""), lambda args: [row], list(row), arguments)
    assert not exit_.value.code
    record = json.loads(path.read_text("utf-8"))
    assert record["rows"] == [row] and record["columns"] == list(row)
    assert record["command"] == f"python -m benchmarks.pipeline --out={path} --data_dir=DATA"
    assert record["machine"]["processor"] and record["machine"]["cores"] >= 1
    assert record["machine"]["gemm_gflops"] == 100.0
    assert isinstance(record["machine"]["instruction_sets"], list)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"]) and record["commit"]
