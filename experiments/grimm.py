"""Fills long blanks of Grimm's tales, where one noun and one verb of a sentence are left, and prints the row.

Paper: Text Infilling (Zhu, Hu, Xing 2019), section "Long Content Infilling". It prints:

         Task  Blanks  Metric      Template  Seq2Seq     GAN  Self-attn
Grimm's tales       3  Perplexity         -   10.411  11.784      9.647
Grimm's tales       3  Human Eval         -    1.991   1.338      2.664

Command:
    python -m experiments.grimm --data_dir=FOLDER_THAT_HOLDS_grimm/
    python -m experiments.grimm --preset=smoke
    python -m experiments.grimm --masking=anchors_noun_verb --data_dir=FOLDER_OF_TEXT_FILES

The first takes the authors' own pairs of template and sentence, the second made-up sentences, for which it needs no
data; the third builds sentences from raw text and masks them by rule, which takes NLTK's tagger.
Expected: the row of the table, the paper's numbers beside ours, and three filled sentences.
Duration: said at the start.
"""

from experiments import experiment, flags

TASK = "grimm"


def run(values) -> None:
    """Runs the row that the flags name and prints it."""
    experiment.run_task(values, TASK)


def define_flags(values) -> None:
    """Defines the flags of this command."""
    experiment.define_task_flags(values, TASK)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
