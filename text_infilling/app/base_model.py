"""Makes the base English model: `python -m text_infilling.app.base_model prepare --out DIR` builds its training text.

Then `train` fits a model to it, `evaluate` scores the model on held-out sentences, and `ship` writes the folder that
the package contains.
"""

import argparse
import collections
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from text_infilling.app import fitting
from text_infilling.app.fit_config import FitConfig
from text_infilling.corpora.base_texts import LONGEST, SHORTEST, SOURCES, chance, sentences
from text_infilling.runs.run_folder import BASE_MODEL, open_run
from text_infilling.utils import files
from text_infilling.utils.columns import aligned
from text_infilling.utils.command import run_command

HELD_OUT = 1000  # sentences of each source that no base model is trained on
REPORT = "sources.json"  # written last
RECIPE = FitConfig(
    mask_rate=(0.15, 0.6),
    blanks=4,
    keep_case=True,
    seed=1,
    from_scratch=True,
    assignments=(
        "decoder.num_blocks=3", "optimizer.name=muon", "schedule.peak=5e-3", "optimizer.adam_lr_ratio=0.5",
        "optimizer.ns_steps=2", "optimizer.weight_decay=0.1", "decoder.embedding_dropout=0",
        "decoder.attention_dropout=0", "decoder.residual_dropout=0", "train.batch_size=150", "train.min_count=4",
        "train.epochs=15", "train.patience=0",
    ),
)  # fmt: skip


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

    def command(name, function, description):
        sub = commands.add_parser(name, help=description, description=description, allow_abbrev=False)
        sub.set_defaults(function=function)
        return sub.add_argument

    add = command("prepare", _prepare, "Builds the training text from five packages.")
    add("--out", type=Path, required=True, help="folder for the text (about 25 MB)")
    add("--packages", type=Path, help="folder of the downloaded packages (default: OUT/packages)")

    add = command("train", _train, "Trains the model, or resumes its training.")
    add("--text", type=Path, required=True, metavar="FOLDER", help="folder that `prepare` wrote")
    add("--out", type=Path, required=True, metavar="RUN", help="run folder to create, or to resume")

    def held_out():
        add("--run", type=Path, required=True, metavar="RUN", help="run folder of `train`")
        add(
            "--held_out",
            type=Path,
            default=Path("runs/base_text/held_out"),
            metavar="FOLDER",
            help="the folder held_out of `prepare` (default: %(default)s)",
        )

    add = command("evaluate", _evaluate, "Prints the scores of a model on the held-out sentences of each source.")
    held_out()
    add = command("ship", _ship, "Writes the folder of the base model: float16 weights, scores, model card.")
    held_out()
    add("--out", type=Path, default=BASE_MODEL, metavar="FOLDER", help="folder to write (default: in the package)")
    given = parser.parse_args(arguments)
    run_command(lambda: given.function(given))


def _prepare(args: argparse.Namespace) -> None:
    if (args.out / REPORT).exists():
        raise ValueError(f"{args.out} has a finished text: give another --out")
    rows = build(args.packages or args.out / "packages", args.out)["sources"]
    names = ("training_sentences", "held_out_sentences", "words")
    grid = [("source", *names), *((row["source"], *(f"{row[name]:,}" for name in names)) for row in rows)]
    print("\n".join(aligned(grid)))


def _train(args: argparse.Namespace) -> None:
    fitting.fit(args.text / "train.txt", args.out, RECIPE)


def _evaluate(args: argparse.Namespace) -> None:
    run = open_run(args.run)
    from text_infilling.app import base_artefact  # imports TensorFlow: the run is checked first

    print("\n".join(aligned(base_artefact.table(base_artefact.evaluate(run, args.held_out)))))


def _ship(args: argparse.Namespace) -> None:
    run = open_run(args.run)
    from text_infilling.app import base_artefact  # imports TensorFlow: the run is checked first

    command = f"python -m text_infilling.app.base_model {shlex.join(sys.argv[1:])}"
    print("\n".join(aligned(base_artefact.table(base_artefact.ship(run, args.held_out, args.out, command)))))
    print(f"written to {args.out}", flush=True)


if __name__ == "__main__":
    main()
