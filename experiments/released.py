"""The test outputs that the paper's authors released: where they are, and reading them, without TensorFlow.

They were removed from the authors' repository and remain in its history, at fixed commits. Each file has, for each test
sentence, the template, the true sentence and the filled sentence, as strings of tokens that begin with `<BOS>`.
"""

import dataclasses
import hashlib
from pathlib import Path
from typing import NamedTuple

from experiments.cells.setting import Setting
from experiments.tables import paper
from text_infilling.corpora.corpus import cache_folder
from text_infilling.corpora.download import RemoteFile, download
from text_infilling.runs.checks import check_types
from text_infilling.utils import files

REPOSITORY = "https://raw.githubusercontent.com/VegB/Text_Infilling"
COMMITS = {"a": "2bc2cad23d5eb6c415cc9d215b486d0dd4dedcb6", "b": "b2aa6cf61b5d8de2f57c466f28d4e2cac447211a"}
HINT = "pass --original_dir=FOLDER, a folder that contains outputs/*.jsonl"

# Task, mask rate, blanks, model, epoch of the output, batch size, epochs and longest sentence of the run, BLEU in the
# file's name, commit, and the file's blob hash.
TABLE = """
yelp 0.3 1 seq2seq 149 400 150 16 69.097 b 45de16e6d15da5b16ead786fc9db08244753f7ca
yelp 0.3 1 gan 99 250 100 16 68.470 b d165809b567339282163d5460c963947faccaf94
yelp 0.3 1 self_attention 149 400 150 16 71.104 b 93f6e3f47704b0b86fc05dcdd16779794ddf693f
yelp 0.3 2 seq2seq 149 400 150 16 64.174 b baeff8ed81382386b9cdb3a798bc61b7fd4b1cec
yelp 0.3 2 gan 149 250 150 16 64.337 b 6daf9eddd6fe2b886cb3865d415933417e8034b0
yelp 0.3 2 self_attention 80 400 150 16 65.914 b 9c44618588b31e69cd1a8f012c4af120586ac40b
yelp 0.3 2 self_attention 149 400 150 16 64.165 b 039b1881b66047d6c737e845dceedd28f8276686
yelp 0.4 1 seq2seq 149 400 150 16 61.309 b 21a969064d3f61885ef5b052d080f23865b86122
yelp 0.4 1 gan 99 250 100 16 61.778 b cc5465704b66e552fd35c8b4259648d3c22b7fc4
yelp 0.4 1 self_attention 149 400 150 16 63.543 b 0424a2328d0d700a16eb34175c9ac7a55cdba2e0
yelp 0.4 2 seq2seq 149 400 150 16 55.460 b 348fce175ee607b9a5e2fcf33ee5ee973f3a8bdf
yelp 0.4 2 gan 149 250 150 16 55.326 b cbd13acec2c2227c154b79b930c068daf3db474f
yelp 0.4 2 self_attention 149 400 150 16 59.192 b 21b00c62c198a02bbda1b5b7e01f836e956c45dc
yelp 0.5 1 seq2seq 149 400 150 16 48.865 b ab429bb8ee66f4134f95f5576b4d880af9c3bf39
yelp 0.5 1 gan 99 250 100 16 48.861 b 8045f31b674a52166da1a21328a24db5e097490e
yelp 0.5 1 self_attention 295 400 300 16 52.002 b da3cf160640ccdab235799cd7446273f585f4a8e
yelp 0.5 2 seq2seq 149 400 150 16 42.613 b 8b84ef29f58c0f21c8baaddc59acca6b923e0473
yelp 0.5 2 gan 149 250 150 16 42.535 b 838e91ffb6246cc75e07d4eb6e0795e6cffc3554
yelp 0.5 2 self_attention 149 400 150 16 44.418 b 08427c23f248d3cde90cace9308b2f80fe843a9d
grimm - 3 seq2seq 349 150 350 20 12.855 a 5d277253dd3b62b316a2b859c23f2c2aea659f42
grimm - 3 gan 349 150 350 20 12.414 b 6f9279490cfb54d0748534f181053ecb3c7fd5d8
grimm - 3 self_attention 349 150 350 20 12.550 a 05194bb3d6f4263572aade03ee0b9360cacb20cb
nba - 3 seq2seq 149 500 150 17 30.657 a dbd8261025919480472bdcfaa49daf340eddaedd
nba - 3 gan 149 200 150 17 31.381 a fb4e9167da62c0a407792a28a4dcd08651235cec
nba - 3 self_attention 149 200 150 17 30.846 a 06913bb6599f733bba1d56a295cc88dfa1e983ce
prepositions - 3 seq2seq 349 400 350 16 72.156 a 15cca696a99a4ddb2ec5dac2c1dc5672b929354f
prepositions - 3 gan 149 150 150 20 73.155 b f35fdd42b74173949acc22680c7a6be5f725d983
prepositions - 3 self_attention 349 400 350 16 77.159 a 22fd1e5fd91eb4695229a723a1c885d62152cf95
"""
# The authors' names of tasks, of their settings, and of files.
_RUNS = {"yelp": "pos", "grimm": "grimm.lm", "nba": "nba.lm", "prepositions": "grimm.prep"}
_FILES = {"grimm": "grimm_lm", "nba": "nba", "prepositions": "grimm_prep"}
_HIDDEN = {"nba": 400}


class Line(NamedTuple):
    """A test sentence of an output: three strings of tokens, each with `<BOS>` at its start."""

    template: str
    expected: str
    got: str


@dataclasses.dataclass(frozen=True)
class Source:
    """One released output file.

    Attributes:
        setting: the paper's setting.
        model: the model that filled the blanks.
        epoch: epoch of the model.
        name: name without suffix, e.g. `yelp.mask0.3.blanks1.gan.epoch99`.
        bleu: the BLEU in the authors' file name.
        path: path in the authors' repository.
        commit: a commit that has the file.
        blob: git's SHA-1 of the file.
    """

    setting: Setting
    model: str
    epoch: int
    name: str
    bleu: str
    path: str
    commit: str
    blob: str

    @property
    def is_printed(self) -> bool:
        """Whether the paper prints the BLEU of this output."""
        return paper.printed(self.setting, self.model, "bleu") == self.bleu


def _source(row: str) -> Source:
    task, rate, blanks, model, epoch, batch, epochs, longest, bleu, commit, blob = row.split()
    setting = paper.row_of(Setting(task, "", None if rate == "-" else float(rate), int(blanks), "", ""))
    short = model.replace("self_attention", "self_attn")
    present = "0.2" if rate == "-" else f"{1 - float(rate):.1f}"
    suffix = "" if model == "self_attention" else f".{model}"
    how = f"train_present{present}.test_present{present}" if model == "self_attention" else "beam2alpha0.6"
    folder = (
        f"{_RUNS[task]}.bsize{batch}.epoch{epochs}.seqlen{longest}.dynamic_lr.fixed_mask.present{present}"
        f".partition{blanks}.hidden{_HIDDEN.get(task, 512)}{suffix}"
    )
    what = f"yelp.mask{rate}.blanks{blanks}" if task == "yelp" else _FILES[task]
    return Source(
        setting, model, int(epoch), f"{what}.{short}.epoch{epoch}", bleu,
        f"examples/long_text/log_dir/{folder}/epoch{epoch}.{how}.test.results.bleu{bleu}", COMMITS[commit], blob,
    )  # fmt: skip


SOURCES = tuple(map(_source, TABLE.split("\n")[1:-1]))


def as_released(lines: list[Line]) -> bytes:
    """Returns the content of the authors' file: three labelled lines and an empty one per sentence."""
    return "".join(
        f"- template: {line.template}\n- expected: {line.expected}\n- got:      {line.got}\n\n" for line in lines
    ).encode("utf-8")


def parsed(content: bytes, name: str) -> list[Line]:
    """Returns the sentences of a file of the authors.

    Raises:
        ValueError: it has another form; the message begins with `name`.
    """
    labels = ("- template: ", "- expected: ", "- got:      ", "")
    rows = content.decode("utf-8").split("\n")[:-1]
    if len(rows) % len(labels) or not all(row.startswith(labels[i % 4]) for i, row in enumerate(rows)):
        raise ValueError(f"{name} does not consist of the lines template, expected, got and an empty line")
    texts = [row.removeprefix(labels[i % 4]) for i, row in enumerate(rows)]
    return [Line(*texts[i : i + 3]) for i in range(0, len(texts), len(labels))]


def read(source: Source, original_dir: Path | None) -> list[Line]:
    """Returns the sentences of an output, checked to be the authors'.

    Args:
        source: the output.
        original_dir: folder with `outputs/NAME.jsonl`, one object with `template`, `expected` and `got` per line; None
            downloads the authors' file to the cache.

    Raises:
        OSError: the file is missing, or cannot be downloaded.
        ValueError: the file is not the authors'.
    """
    if original_dir is None:
        folder = cache_folder() / "original" / source.name
        file = RemoteFile(source.path, f"git:{source.blob}")
        path = download(file, folder, f"{REPOSITORY}/{source.commit}", hint=HINT)
        return parsed(path.read_bytes(), str(path))
    path = original_dir / "outputs" / f"{source.name}.jsonl"
    lines = []
    for number, row in enumerate(files.read_jsonl(path), start=1):
        try:
            check_types(row, dict.fromkeys(Line._fields, str))
        except ValueError as error:
            raise ValueError(f"line {number} of {path}: {error}") from error
        lines.append(Line(*(row[field] for field in Line._fields)))
    content = as_released(lines)
    if hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() != source.blob:
        raise ValueError(f"{path} differs from the output that the authors released: it was changed")
    return lines
