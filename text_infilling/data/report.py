"""Statistics of a corpus beside the paper's figures, printed at the start of a run and saved with it."""

import array
import hashlib
from collections import Counter
from collections.abc import Iterable, Set
from pathlib import Path

import numpy as np

from text_infilling.corpora.corpus import SPLITS, Corpus
from text_infilling.data.blank_rule import BlankRule
from text_infilling.data.pipeline import SplitStats, cached_split_stats
from text_infilling.utils import files
from text_infilling.utils.columns import aligned
from text_infilling.vocabulary import Vocabulary

# Paper, sections 4.1 and 4.2 and appendix B.3; it gives no figures for validation.
PAPER = {
    "yelp": {"train_lines": "104K", "test_lines": "1K", "vocabulary": "9K", "mask_rate": ""},
    "grimm": {"train_lines": "16K", "test_lines": "3K", "vocabulary": "7K", "mask_rate": "81.3%", "tales": "209"},
    "nba": {"train_lines": "21K", "test_lines": "5K", "vocabulary": "8K", "mask_rate": "78.1%"},
    "prepositions": {
        "train_lines": "16K",
        "test_lines": "3K",
        "vocabulary": "7K",
        "mask_rate": "20.9%",
        "tales": "209",
    },
}


def data_report(
    corpus: Corpus,
    vocabulary: Vocabulary,
    mask_rate: float | None,
    blanks: int,
    masking: str = "fixed",
    min_count: int | None = None,
) -> dict:
    """Returns the statistics of a corpus for one vocabulary and one masking, as a dict that JSON can hold.

    The files are read line by line; memory holds 8 bytes per line and one count per word type.

    Args:
        corpus: the corpus to describe.
        vocabulary: vocabulary of the run.
        mask_rate: requested fraction of masked words, in (0, 1); None if the lines include their blanks.
        blanks: blanks per sentence.
        masking: `fixed` or `random`, or the name of the rule that gave the lines their blanks.
        min_count: minimum number of occurrences of a word in the vocabulary; only shown.

    Raises:
        ValueError: the masking is unknown, or the mask rate or the number of blanks is out of range.
    """
    rule = BlankRule("given" if corpus.blanks else masking, mask_rate, blanks)
    words = frozenset(vocabulary.words)
    splits, train_hashes = {}, np.empty(0, np.uint64)
    for split in SPLITS:
        found = cached_split_stats(getattr(corpus, split), rule, corpus.checksum)
        splits[split], hashes = _statistics(corpus.texts(split), words, found)
        if split == "train":
            train_hashes = np.unique(hashes)
        splits[split]["also_in_train"] = None if split == "train" else int(np.isin(hashes, train_hashes).sum())
    return {
        "corpus": corpus.name,
        "task": corpus.task,
        "source": corpus.source,
        "note": corpus.note,
        "checksum": corpus.checksum,
        "tales": corpus.tales,
        "vocabulary": {"words": len(words), "with_special_tokens": len(vocabulary), "min_count": min_count},
        "masking": {"kind": masking, "mask_rate": mask_rate, "blanks": blanks},
        "splits": splits,
        "paper": PAPER[corpus.task],
    }


def format_report(report: dict) -> str:
    """Returns the report as an aligned plain-text table with the paper's figures, without a newline at the end."""
    splits, vocabulary, masking, paper = (report[key] for key in ("splits", "vocabulary", "masking", "paper"))

    def row(label: str, key: str, form: str, papers: str = "") -> tuple[str, ...]:
        values = (splits[split][key] for split in SPLITS)
        return (label, *("-" if value is None else format(value, form) for value in values), papers)

    rows = [
        ("", *SPLITS, "paper"),
        *([("tales", f"{report['tales'] or '-'}", "", "", paper["tales"])] if "tales" in paper else []),
        row("lines", "lines", ",", f"{paper['train_lines']} / {paper['test_lines']}"),
        row("distinct lines", "distinct_lines", ","),
        row("lines also in train", "also_in_train", ","),
        row("tokens", "tokens", ","),
        row("shortest sentence", "shortest", ","),
        row("mean sentence", "mean_length", ".2f"),
        row("longest sentence", "longest", ","),
        row("unknown tokens", "unknown_rate", ".3%"),
        row("masked tokens", "mask_rate", ".1%", paper["mask_rate"]),
        row("too short to mask", "too_short", ","),
        ("vocabulary", f"{vocabulary['words']:,}", "", "", paper["vocabulary"]),
        ("with special tokens", f"{vocabulary['with_special_tokens']:,}", "", "", ""),
    ]
    lines = [f"Data report: {report['corpus']} corpus, {report['source']}", *aligned(rows)]
    asked = "" if masking["mask_rate"] is None else f", {100 * masking['mask_rate']:g}% requested"
    lines.append(f"masking: {masking['kind']}{asked}, blanks: {masking['blanks']}")
    if vocabulary["min_count"] is not None:
        where = "train" if report["task"] == "yelp" else "train, valid and test"
        lines.append(f"vocabulary: words that occur at least {vocabulary['min_count']} times in {where}")
    if report["note"]:
        lines.append(f"note: {report['note']}")
    lines.append(f"sha256: {report['checksum']}")
    return "\n".join(lines)


def save_report(report: dict, folder: str | Path) -> None:
    """Writes data_report.json and the readable data_report.txt into an existing folder, each file atomically."""
    files.write_json(Path(folder) / "data_report.json", report)
    files.write_text(Path(folder) / "data_report.txt", format_report(report) + "\n")


def _statistics(texts: Iterable[str], words: Set[str], found: SplitStats) -> tuple[dict, np.ndarray]:
    """Returns the statistics of a split, and a 64-bit hash per line, `[lines]`; `words` are those of the vocabulary."""
    lengths, counts, hashes = _read(texts)
    tokens = sum(counts.values())
    statistics = {
        "lines": len(hashes),
        "distinct_lines": len(np.unique(hashes)),
        "tokens": tokens,
        "shortest": min(lengths),
        "mean_length": tokens / len(hashes),
        "longest": max(lengths),
        "unknown_rate": sum(count for word, count in counts.items() if word not in words) / tokens,
        "mask_rate": found.mask_rate if found.lines else None,
        "too_short": found.left_out,
    }
    return statistics, hashes


def _read(texts: Iterable[str]) -> tuple[Counter, Counter, np.ndarray]:
    """Returns the number of lines of each length, the count of each word, and a 64-bit hash per line, `[lines]`."""
    lengths, counts, hashes = Counter(), Counter(), array.array("Q")
    for text in texts:
        tokens = text.split()
        lengths[len(tokens)] += 1
        counts.update(tokens)
        digest = hashlib.blake2b(" ".join(tokens).encode("utf-8"), digest_size=8).digest()
        hashes.append(int.from_bytes(digest, "little"))
    return lengths, counts, np.array(hashes, np.uint64)
