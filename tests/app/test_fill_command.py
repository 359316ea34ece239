"""The command `text-infill fill`: output lines, order, errors and warnings, with a stand-in for the model."""

import io
import json
import re
import shutil
import sys
import time
import tracemalloc
import types
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving_helper import Echo

from text_infilling.app import cli, commands, demo, demo_sentences, fitting, text_stream
from text_infilling.inference.infiller import Infiller
from text_infilling.runs.run_folder import open_run
from text_infilling.utils import files


@pytest.fixture(autouse=True)
def no_run_is_opened(monkeypatch):
    """Lets the stand-in accept `--run=x`."""
    run = types.SimpleNamespace(learned=types.SimpleNamespace(warning=lambda *_: None))
    monkeypatch.setattr(commands, "open_run", lambda folder: run if folder == "x" else open_run(folder))


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_a_line_that_is_not_utf_8_gives_an_error_record(source, tmp_path, monkeypatch, capsys):
    content = "é ____\r\n".encode() + b"caf\xe9 ____\n\xff\n" + b"d ____"
    monkeypatch.setattr(Infiller, "load", lambda folder: Echo())
    monkeypatch.setattr(text_stream, "CHUNK", 2)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    (tmp_path / "in.txt").write_bytes(content)
    with pytest.raises(SystemExit) as error:
        cli.main(["fill", "--run=x", "--json", f"--file={tmp_path / 'in.txt' if source == 'file' else '-'}"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert error.value.code == 1 and [record["line"] for record in records] == [1, 2, 3, 4]
    assert [record.get("text") for record in records] == ["é é", None, None, "d d"]
    assert all("not UTF-8" in record["error"] for record in records[1:3])


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_a_huge_line_gives_an_error_record_and_is_never_held_in_memory(source, tmp_path, monkeypatch, capsys):
    long = b"a" * 2**23
    just = b"b" * (text_stream.MOST_BYTES - 1)
    content = b"a ____\n" + long + b" ____\n" + just + b"\n" + just + b"\xc3\xa9\nd ____\n" + just + b"e"
    monkeypatch.setattr(Infiller, "load", lambda folder: Echo())
    (tmp_path / "in.txt").write_bytes(content)
    del content
    stream = open(tmp_path / "in.txt", "rb")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    tracemalloc.start()
    with pytest.raises(SystemExit) as error:
        cli.main(["fill", "--run=x", "--json", f"--file={tmp_path / 'in.txt' if source == 'file' else '-'}"])
    assert tracemalloc.get_traced_memory()[1] < len(long) / 2
    tracemalloc.stop()
    stream.close()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert error.value.code == 1 and [record["line"] for record in records] == [1, 2, 3, 4, 5, 6]
    texts = [record.get("text") for record in records]
    assert texts == ["a a", None, just.decode(), None, "d d", just.decode() + "e"]
    assert all("longer than 65,536 bytes" in records[i]["error"] for i in (1, 3))


def test_a_byte_order_mark_at_the_start_of_a_file_is_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Infiller, "load", lambda folder: Echo())
    (tmp_path / "in.txt").write_text("\ufeffa ____\n\ufeffb ____\n", "utf-8")
    with pytest.raises(SystemExit):
        cli.main(["fill", "--run=x", f"--file={tmp_path / 'in.txt'}"])
    assert capsys.readouterr().out == "a a\n\ufeffb \ufeffb\n"


def test_the_demo_model_is_trained_on_first_use_only(infiller_run, tmp_path, monkeypatch, capsys):
    learned = []

    def fit(source, out, config, say):
        learned.append(source.read_text("utf-8").splitlines())
        shutil.copytree(infiller_run, out)
        with files.Log(out / "log.txt", say) as log:
            log("step 1")
        (out / "metrics.json").write_text("{}", "utf-8")

    monkeypatch.setattr("text_infilling.app.fitting.fit", fit)
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path / "cache"))
    trained = f"training the demo model once, which takes about a minute; it is kept in {tmp_path}"
    first, other = demo.SETTINGS, (*demo.SETTINGS, "train.epochs=2")
    for printed, settings in ((trained, first), ("", first), (trained, other)):
        monkeypatch.setattr(demo, "SETTINGS", settings)
        with pytest.raises(SystemExit) as error:
            cli.main(["fill", "--demo", "--limits", '{"exact_words": 1}', "The ____ was so good."])
        out, err = capsys.readouterr()
        assert error.value.code == 0 and err.startswith(printed) and bool(err) == bool(printed)
        assert re.fullmatch(r"The ?\S+ was so good\.\n", out)
    assert learned == [list(demo_sentences.sentences())] * 2  # other settings train another model


def test_each_line_is_answered_before_the_next_one_is_read(monkeypatch, capsys):
    """As at a terminal or through a pipe: only the bytes already written are read."""
    parts = {b"a __": "", b"__\nb ____\nc": "", b" ____\n": "a a\nb b\n", b"d ____": "c c\n", b"": ""}
    waiting = iter(parts.items())

    class Writer(io.BytesIO):
        def read1(self, size=-1):
            part, answered = next(waiting)
            assert capsys.readouterr().out == answered
            return part

    monkeypatch.setattr(Infiller, "load", lambda folder: Echo())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Writer()))
    with pytest.raises(SystemExit):
        cli.main(["fill", "--run=x"])
    assert capsys.readouterr().out == "d d\n"


def test_an_empty_line_ends_the_results_of_each_text(monkeypatch, capsys):
    monkeypatch.setattr(Infiller, "load", lambda folder: Echo())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a ____\n\xff\nc ____\n")))
    with pytest.raises(SystemExit):
        cli.main(["fill", "--run=x", "--num_results=2"])
    groups = capsys.readouterr().out.split("\n\n")
    assert [group.partition(":")[0] for group in groups] == ["a a\na a1", "line 2", "c c\nc c1", ""]


def test_the_progress_of_a_long_file_is_printed(tmp_path, monkeypatch, capsys):
    now = iter(range(0, 10_000, 6))
    monkeypatch.setattr("text_infilling.utils.progress.time.monotonic", lambda: next(now))
    monkeypatch.setattr(Infiller, "load", lambda folder: Echo())
    monkeypatch.setattr(text_stream, "MOST_BYTES", 14)  # two lines
    (tmp_path / "in.txt").write_text("a ____\n" * 8, "utf-8")
    with pytest.raises(SystemExit):
        cli.main(["fill", "--run=x", f"--file={tmp_path / 'in.txt'}"])
    assert capsys.readouterr().err.splitlines() == [
        "4 lines done, 0 per second, 50%, 12 s left",
        "8 lines done, 0 per second, 100%, 0 s left",
    ]


def test_min_words_and_no_repeat_ngram_are_passed_to_every_fill(monkeypatch, capsys):
    given = []

    class Recorder(Echo):
        def fill(self, texts, *, limits, **options):
            given.append((limits, options["no_repeat_ngram"]))
            return super().fill(texts, limits=limits)

    monkeypatch.setattr(Infiller, "load", lambda folder: Recorder())
    for flags, least, size in (([], None, None), (["--min_words=0", "--no_repeat_ngram=0"], {"min_words": 0}, 0)):
        with pytest.raises(SystemExit) as error:
            cli.main(["fill", "--run=x", *flags, "a ____"])
        assert error.value.code == 0 and given == [(least, size), ([least], size)]
        given.clear()
    with pytest.raises(SystemExit) as error:
        cli.main(["fill", "--run=x", "--min_words=0", "--limits={}", "a ____"])
    assert error.value.code == 2
    assert "argument --limits: not allowed with argument --min_words" in capsys.readouterr().err


def test_the_limits_of_each_blank_are_passed_for_every_text(monkeypatch, capsys):
    given = []

    class Picky(Echo):
        def fill(self, texts, *, limits, **options):
            given.append((texts, limits))
            return super().fill(texts, limits=limits)

    monkeypatch.setattr(Infiller, "load", lambda folder: Picky())
    limits = [{"max_words": 1}, {"max_words": 2}]
    texts = ["a ____ ____", "forbidden ____ ____", "c ____ ____"]
    with pytest.raises(SystemExit) as error:
        cli.main(["fill", "--run=x", "--json", "--limits", json.dumps(limits), *texts])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert error.value.code == 1 and [record["line"] for record in records] == [1, 2, 3]
    assert [record.get("text") for record in records] == ["a a a", None, "c c c"] and "forbidden" in records[1]["error"]
    probe, together, *_ = given
    assert probe[0].count("____") == 2 and probe[1] == limits
    assert together == (texts, [limits] * 3)


def test_of_two_processes_that_start_the_demo_one_trains_and_the_other_waits(tmp_path, monkeypatch, capsys):
    trained = []

    def fit(source, folder, config, say):
        assert "please" in source.read_text("utf-8")
        trained.append(folder)
        while "waiting until it is done" not in capsys.readouterr().err:
            time.sleep(0.01)
        folder.mkdir()
        (folder / "metrics.json").touch()

    monkeypatch.setattr(fitting, "fit", fit)
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path / "cache"))
    with ThreadPoolExecutor(2) as pool:
        folders = [future.result(60) for future in [pool.submit(demo.demo_run) for _ in range(2)]]
    assert folders == trained * 2 and folders[0].parent == tmp_path / "cache"


# Texts without a blank


def run_fill(monkeypatch, capsys, texts, *flags, infiller=None):
    """Runs `fill`; returns the exit code, the lines of stdout and the lines of stderr."""
    monkeypatch.setattr(Infiller, "load", lambda folder: infiller or Echo())
    with pytest.raises(SystemExit) as error:
        cli.main(["fill", "--run=x", *flags, *texts])
    captured = capsys.readouterr()
    return error.value.code, captured.out.splitlines(), captured.err.splitlines()


A_BLANK_IS = "a blank is ____ (two or more underscores), alone between spaces or punctuation"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("no mask at all", f"no blank: {A_BLANK_IS}"),
        ("Toronto_Raptors won _num_ games", f"no blank: {A_BLANK_IS}"),
        ("an un____able rule", f"no blank, but un____able: {A_BLANK_IS}"),
        ("the [MASK] is", f"no blank, but [MASK]: {A_BLANK_IS}; --blank_token '[MASK]' accepts another mask"),
        ("the <mask>.", f"no blank, but <mask>: {A_BLANK_IS}; --blank_token '<mask>' accepts another mask"),
        ("the _ is", f"no blank, but _: {A_BLANK_IS}; --blank_token '_' accepts another mask"),
        (
            "<extra_id_0> is <extra_id_1>",
            f"no blank, but <extra_id_0>, <extra_id_1>: {A_BLANK_IS}; "
            "--blank_token '<extra_id_0>' accepts another mask",
        ),
        (
            "____ is [MASK]",
            f"[MASK], which is not a blank: {A_BLANK_IS}; --blank_token '[MASK]' accepts another mask",
        ),
        ("____ is re__do or un____able", f"re__do, un____able, which are not blanks: {A_BLANK_IS}"),
    ],
)
def test_a_text_without_a_blank_is_returned_with_a_warning(text, warning, monkeypatch, capsys):
    texts = ["a ____", "", text]
    code, out, err = run_fill(monkeypatch, capsys, texts)  # the stand-in fills `____` with the first word
    assert code == 0 and err == [f"text 3 has {warning}"]
    assert out == ["a a", "", text]
    _, out, err = run_fill(monkeypatch, capsys, texts, "--json")
    assert err == [f"text 3 has {warning}"]
    assert [json.loads(line).get("warning") for line in out] == [None, None, f"text 3 has {warning}"]


def test_each_kind_of_warning_is_printed_only_once(monkeypatch, capsys):
    kinds = ["none", "the [MASK]", "the [mask] or <mask>", "x{}__y", "<extra_id_{}>"]
    texts = [kind.format(n) for n in range(300) for kind in kinds]
    code, out, err = run_fill(monkeypatch, capsys, texts, "--json")
    assert code == 0 and len(out) == 1500 and all("warning" in json.loads(line) for line in out)
    assert [line[: len("text 1 has")] for line in err] == [f"text {n} has" for n in range(1, 6)]


def test_a_warning_shows_the_beginning_of_a_long_mark(monkeypatch, capsys):
    _, _, err = run_fill(monkeypatch, capsys, ["a" * 30_000 + "__" + "b" * 30_000])
    assert err == [f"text 1 has no blank, but {'a' * 40}...: {A_BLANK_IS}"]


def test_the_first_text_that_is_far_from_what_the_model_learned_gets_a_warning(monkeypatch, capsys):
    far = {"x ____ ____": "it has 2 blanks", "y ____ ____": "it has 2 blanks"}
    run = types.SimpleNamespace(learned=types.SimpleNamespace(warning=lambda text, _: far.get(text)))
    monkeypatch.setattr(commands, "open_run", lambda folder: run)
    code, _, err = run_fill(monkeypatch, capsys, ["a ____", *far])
    assert (code, err) == (0, ["text 2 is far from what the model learned: it has 2 blanks"])


def test_an_error_of_a_text_is_not_followed_by_a_warning(monkeypatch, capsys):
    code, out, err = run_fill(monkeypatch, capsys, ["forbidden [MASK]"])
    assert code == 1 and "error" in out[0] and err == []


@pytest.mark.parametrize(
    ("blank_token", "text"),
    [
        ("[MASK]", "The  [MASK] was [MASK]; de[MASK]ed."),
        ("<extra_id_0>", "The  <extra_id_0> was <extra_id_17>; [MASK]."),
        ("_", "The  _ was _; _num_ [MASK]."),
        ("(?)", "The  (?) was ____; [MASK]."),
    ],
)
def test_another_mask_is_filled_and_the_text_around_it_is_unchanged(blank_token, text, infiller, monkeypatch, capsys):
    flags = "--json", '--limits={"exact_words": 1}', "--blank_token", blank_token
    code, out, err = run_fill(monkeypatch, capsys, [text], *flags, infiller=infiller)
    filled = json.loads(out[0])
    first, second = filled["fills"]
    end = text[text.index(";") :]
    assert code == 0 and filled["text"] == f"The  {first} was {second}{end}"
    assert infiller.fill(text, blank_token=blank_token, limits={"exact_words": 1}).fills == [first, second]
    assert err == [
        "text 1 has [MASK], which is not a blank: a blank is ____ (two or more underscores) or "
        f"{blank_token}, alone between spaces or punctuation"
    ]


@pytest.mark.parametrize("blank_token", ["", "a b", "\t", None, 3])
def test_an_invalid_blank_token_gives_a_one_line_error(blank_token, infiller, capsys):
    message = "blank_token must be a string without white space, not empty. Received: "
    if isinstance(blank_token, str):
        with pytest.raises(SystemExit) as error:
            cli.main(["fill", "--run=x", "--blank_token", blank_token])
        assert error.value.code == 2 and message in capsys.readouterr().err
    if blank_token is not None:
        with pytest.raises(ValueError, match=re.escape(message + repr(blank_token))):
            infiller.fill("a ____", blank_token=blank_token)
