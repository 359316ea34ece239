"""Fills in the prepositions and articles of Grimm's tales, and prints a row of our numbers.

Paper: Text Infilling (Zhu, Hu, Xing 2019), appendix "Preposition Infilling". It prints a sample and no numbers.

Command:
    python -m experiments.prepositions --data_dir=FOLDER_THAT_HOLDS_grimm/
    python -m experiments.prepositions --preset=smoke
    python -m experiments.prepositions --masking=word_classes --data_dir=FOLDER_OF_TEXT_FILES

The first takes the authors' own pairs of template and sentence, the second made-up sentences, for which it needs no
data; the third builds sentences from raw text and masks them by rule, which takes NLTK's tagger.
Expected: the row of the table, the paper's numbers beside ours, and three filled sentences.
Duration: said at the start.
"""

from experiments import experiment, flags

TASK = "prepositions"


def run(values) -> None:
    """Runs the row that the flags name and prints it."""
    experiment.run_task(values, TASK)


def define_flags(values) -> None:
    """Defines the flags of this command."""
    experiment.define_task_flags(values, TASK)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
