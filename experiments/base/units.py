"""The units of work: one fit with its scores, or the scores of one filler; each is a JSON file in the work folder."""

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from experiments.base import scores
from experiments.base.texts import LINES, Texts, sample
from text_infilling.corpora.download import sha256
from text_infilling.runs import layout
from text_infilling.runs.run_folder import RunFolder, open_run
from text_infilling.utils import files
from text_infilling.utils.progress import duration

if TYPE_CHECKING:  # imports TensorFlow
    from experiments.base.ngram import NgramFiller
    from text_infilling.app.fitting import Recipe

SEEDS = (1, 2, 3)
YELP_LINES = (300, 1_000, 3_000, 20_000)
ALL_LINES = 0  # all lines of a corpus
BASE, FRESH, NGRAM = "base", "fresh", "ngram"  # initial weights of a fit; BASE and NGRAM are fillers too
MASKED = 20_000  # sentences of the training text that are masked to learn how long blanks are
# Sentences that a fit reads: `fitting.STEPS` batches of 100, or 100 epochs of a small text; the rest is evaluation.
_EPOCHS, _MOST_READ, _OVERHEAD = 100, 250_000, 20_000


class Unit(NamedTuple):
    """A unit of work.

    Attributes:
        corpus: `yelp`, `grimm` or a source of the base model.
        lines: number of lines of a fit; `ALL_LINES` for all, None if nothing is fitted.
        start: initial weights of the fit, `BASE` or `FRESH`; of a filler without fit `BASE` or `NGRAM`.
        seed: seed of the fit, and of the choice of its lines.
    """

    corpus: str
    lines: int | None
    start: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its file.

        >>> Unit("yelp", 300, "fresh", 1).name, Unit("novels", None, "ngram", 1).name
        ('yelp.300.fresh.seed1', 'novels.alone.ngram')
        """
        if self.lines is None:
            return f"{self.corpus}.alone.{self.start}"
        return f"{self.corpus}.{self.lines or 'all'}.{self.start}.seed{self.seed}"


def planned(sources: Sequence[str]) -> list[Unit]:
    """Returns all units: small ones and seed 1 first, so that partial results are useful.

    Args:
        sources: names of the sources of the base model.
    """
    alone = [
        unit
        for source in sources
        for unit in (Unit(source, None, BASE, 1), Unit(source, LINES, FRESH, 1), Unit(source, None, NGRAM, 1))
    ]
    fits = [("yelp", lines) for lines in YELP_LINES[:-1]] + [("grimm", ALL_LINES), ("yelp", YELP_LINES[-1])]
    rows = [[Unit(*fit, start, seed) for fit in fits for start in (BASE, FRESH)] for seed in SEEDS]
    return [*rows[0][:2], *alone, *rows[0][2:], *itertools.chain(*rows[1:])]


def work(unit: Unit, texts: Mapping[str, Texts]) -> int:
    """Returns about how many sentences a unit reads."""
    if unit.lines is None:
        return _OVERHEAD // 4
    return min(_EPOCHS * (unit.lines or len(texts[unit.corpus].train)), _MOST_READ) + _OVERHEAD


@dataclasses.dataclass
class Work:
    """Runs the units, and resumes them after a stop.

    Attributes:
        base: the base model.
        texts: lines by corpus.
        base_text: folder of the base model's training text.
        folder: work folder.
        say: receives progress lines.
    """

    base: RunFolder
    texts: Mapping[str, Texts]
    base_text: Path
    folder: Path
    say: Callable[[str], None] = files.say

    def path(self, unit: Unit) -> Path:
        """Returns the file of a unit, which exists once the unit is finished."""
        return self.folder / "units" / f"{unit.name}.json"

    def finished(self, units: Sequence[Unit]) -> dict[Unit, dict]:
        """Returns the results of the finished units."""
        return {unit: files.read_json(self.path(unit)) for unit in units if self.path(unit).exists()}

    def run(self, units: Sequence[Unit], write: Callable[[], None]) -> None:
        """Runs the units that are not finished, in order.

        Args:
            units: all units.
            write: called after each unit.

        Raises:
            ValueError: the work folder has units of another base model.
            OSError: a file cannot be read or written.
        """
        files.make_folder(self.folder / "units", "--workdir")
        self.check_base()
        left = [unit for unit in units if not self.path(unit).exists()]
        seconds = done = 0
        for unit in left:
            rest = sum(work(one, self.texts) for one in left[left.index(unit) :])
            remaining = f", about {duration(rest * seconds / done)} left" if done else ""
            self.say(f"{unit.name}: unit {units.index(unit) + 1} of {len(units)}{remaining}")
            start = time.monotonic()
            files.write_json(self.path(unit), self.result(unit))
            seconds, done = seconds + time.monotonic() - start, done + work(unit, self.texts)
            write()

    def check_base(self) -> None:
        """Records the base model in the work folder.

        Raises:
            ValueError: the folder has units of another base model.
            OSError: the folder cannot be written.
        """
        files.make_folder(self.folder, "--workdir")
        path, made_with = self.folder / "base.json", {"weights": sha256(self.base.weights)}
        if not path.exists():
            files.write_json(path, made_with)
        elif files.read_json(path) != made_with:
            raise ValueError(f"{self.folder} has results of another base model: give another --workdir")

    def result(self, unit: Unit) -> dict:
        """Runs a unit; returns its scores by number of blanks, and the minutes and epochs of its fit."""
        test = self.texts[unit.corpus].test
        if unit.start == NGRAM:
            return {"scores": self._of_ngrams(test)}
        if unit.lines is None:
            from text_infilling.inference.load_model import load_model

            return {"scores": scores.of_model(load_model(self.base), self.base, test, self.folder)}
        lines = self.texts[unit.corpus].train
        lines = sample(lines, unit.lines, unit.seed) if unit.lines else lines
        assignments = ()
        if unit.corpus not in ("yelp", "grimm"):  # is compared with the base model alone, whose words no fit adds to
            assignments = (f"train.min_count={self._most_unknown(lines) + 1}",)
        return self.fitted(unit.name, lines, unit.start, unit.seed, test, assignments)

    def fitted(
        self,
        name: str,
        lines: Sequence[str],
        start: str,
        seed: int,
        held_out: Sequence[str],
        assignments: Sequence[str] = (),
        recipe: "Recipe | None" = None,
    ) -> dict:
        """Fits a model to lines and scores it; a fit that was stopped is resumed.

        Args:
            name: name of the fit.
            lines: the lines.
            start: initial weights, `BASE` or `FRESH`.
            seed: seed of the fit.
            held_out: lines to score the model on.
            assignments: hyperparameters, each `key=value`.
            recipe: default: that of `fit` for these initial weights.

        Returns:
            `scores` by number of blanks, and of the fit `minutes`, `epochs`, `vocabulary`.
        """
        from text_infilling.app import fitting
        from text_infilling.app.fit_config import FitConfig
        from text_infilling.inference.load_model import load_model

        folder = self.folder / "fits" / name
        files.make_folder(folder.parent, "--workdir")
        source = folder.with_suffix(folder.suffix + ".txt")
        files.write_text(source, "".join(f"{line}\n" for line in lines))
        recipe = recipe or (fitting.FINE_TUNING if start == BASE else fitting.FROM_SCRATCH)
        initial = self.base.path if start == BASE else self._fresh(seed)
        config = FitConfig(seed=seed, init_from=str(initial), assignments=tuple(assignments))
        if not (folder / layout.METRICS).exists():
            fitting.fit(source, folder, config, say=lambda line: None, recipe=recipe)  # its log is in the folder
        metrics, run = files.read_json(folder / layout.METRICS), open_run(folder)
        found = scores.of_model(load_model(run), run, held_out, self.folder)
        files.remove(folder)
        source.unlink()
        return {
            "scores": found,
            "minutes": metrics["training_seconds"] / 60,
            "epochs": metrics["epochs"],
            "vocabulary": len(run.vocabulary.words),
        }

    def _fresh(self, seed: int) -> Path:
        """Returns a run folder like the base model's, with fresh weights; creates it if missing."""
        folder = self.folder / "fresh" / f"seed{seed}"
        if not folder.exists():
            import keras

            from text_infilling.models.registry import built_model

            files.make_folder(folder.parent, "--workdir")
            with files.written_aside(folder) as aside:
                aside.mkdir()
                files.write_json(aside / layout.CONFIG, self.base.config)
                self.base.vocabulary.save(aside / layout.VOCABULARY)
                self.base.tokenizer.save(aside / layout.TOKENIZER)
                keras.utils.set_random_seed(seed)
                model = built_model(self.base.model, len(self.base.vocabulary), self.base.hparams)
                model.save_weights(aside / layout.WEIGHTS)
        return folder

    def _most_unknown(self, lines: Sequence[str]) -> int:
        """Returns how often the most frequent word occurs in the lines that the base model does not know."""
        known = frozenset(self.base.vocabulary.words)
        counts: dict[str, int] = {}
        for line in lines:
            for word in self.base.tokenizer.words(line, known):
                if word not in known:
                    counts[word] = counts.get(word, 0) + 1
        return max(counts.values(), default=0)

    def _of_ngrams(self, lines: Sequence[str]) -> dict[str, dict]:
        from text_infilling.app.base_artefact import held_out_task
        from text_infilling.training.evaluation import unfilled

        filler, found = self._filler, {}
        for blanks in scores.BLANKS:
            path = self.folder / "held_out.txt"
            task = held_out_task(lines, self.base, "random", scores.MASK_RATE, blanks, path)
            fills = [dataclasses.replace(fill, infills=filler.fill(fill)) for fill in unfilled(task, "test")]
            found[str(blanks)] = scores.of_fills(fills)
        return found

    @functools.cached_property
    def _filler(self) -> "NgramFiller":
        """The n-gram filler of the base model's training text."""
        from experiments.base.ngram import NgramFiller
        from text_infilling.app.base_artefact import MAX_WORDS, held_out_task
        from text_infilling.corpora import own_texts
        from text_infilling.training.evaluation import unfilled

        self.say("counting the n-grams of the base model's training text")
        cell, path = self.base.config["cell"], self.folder / "masked.txt"
        rate = tuple(cell["mask_rate"]) if isinstance(cell["mask_rate"], list) else cell["mask_rate"]
        with open(self.base_text / "train.txt", encoding="utf-8") as lines:
            some = itertools.islice(lines, MASKED)
            masked = unfilled(held_out_task(some, self.base, "any", rate, cell["blanks"], path), "test")
        with open(self.base_text / "train.txt", encoding="utf-8") as lines:
            known = frozenset(self.base.vocabulary.words)
            sentences = own_texts.sentences(lines, self.base.tokenizer, MAX_WORDS, known)
            return NgramFiller(sentences, self.base.vocabulary, masked)
