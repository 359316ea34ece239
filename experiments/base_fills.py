"""Fills twenty everyday sentences with the base model, and writes the results into docs/base-model.md.

Command:
    python -m experiments.base_fills

Expected: the text between `<!-- base:fills -->` and `<!-- /base:fills -->` is replaced with the most probable infills
and five samples of each sentence.
Duration: under a minute.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments import readme
from experiments.cells import flags
from text_infilling.corpora.download import sha256
from text_infilling.runs.run_folder import RunFolder, open_run
from text_infilling.utils import files

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.inference.results import Filled

PAGE = Path("docs") / "base-model.md"
SAMPLES = 5
SENTENCES = (
    "Could you please ____ the window?",
    "I forgot to ____ before I left the house.",
    "We are going to ____ this weekend.",
    "My sister works ____ in the city.",
    "The train was late, so we ____.",
    "Thank you so much for ____!",
    "He put the keys ____ and went to bed.",
    "It was raining all day, but we still had ____.",
    "What do you usually eat for ____?",
    "The teacher asked the children to ____.",
    "I would like to learn how to ____.",
    "She was ____ because her flight had been cancelled.",
    "I have two ____ and one ____.",
    "If you ____ tomorrow, please ____ some milk.",
    "My grandmother always ____ when we ____.",
    "The ____ in this restaurant is ____.",
    "Yesterday I ____ my old friend at the ____.",
    "He ____ the letter and ____ without a word.",
    "In winter we ____, and in summer we ____.",
    "I do not ____ him, but I ____ his brother.",
)


def marked(filled: "Filled", text: str) -> str:
    """Returns a filled text in Markdown, with its infills in bold."""
    parts = text.split("____")
    shown = [f"{part}**{infill}**" for part, infill in zip(parts, filled.fills, strict=False)]
    return "".join([*shown, parts[-1]]).replace("|", r"\|").replace("<", "&lt;")


def block(run: RunFolder) -> str:
    """Returns the fills of all sentences, with the checksum of the weights."""
    from text_infilling.inference.infiller import Infiller

    infiller = Infiller.load(run)
    greedy = infiller.fill(SENTENCES)
    samples = infiller.fill(SENTENCES, num_results=SAMPLES, seed=1)
    lines = [f"Weights `{sha256(run.weights)[:12]}`; samples with `--seed=1 --num_results={SAMPLES}`.", ""]
    for text, best, others in zip(SENTENCES, greedy, samples, strict=True):
        lines.append(f"- {marked(best, text)}")
        lines += [f"  - {marked(one, text)}" for one in others.alternatives]
    return "\n".join(lines)


def is_current(text: str, run: RunFolder) -> bool:
    """Returns whether a page has the fills of these weights, and of all sentences."""
    parts = (sentence.partition("____")[0].strip() for sentence in SENTENCES)
    return f"Weights `{sha256(run.weights)[:12]}`" in text and all(f"- {part}" in text for part in parts)


def run(values: FlagValues) -> None:
    """Writes the fills into the page."""
    path = Path(values.root) / PAGE
    text = readme.written(path.read_text("utf-8"), {"fills": block(open_run(values.base))}, str(path), "base")
    files.write_text(path, text)
    print(path, flush=True)


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    absl_flags.DEFINE_string(
        "base", None, "Run folder of the base model. Default: the base model of the package.", flag_values=values
    )
    absl_flags.DEFINE_string("root", ".", "Folder that contains docs/base-model.md.", flag_values=values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
