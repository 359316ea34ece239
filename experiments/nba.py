"""Fills long blanks of NBA reports, where one name and one number are left, and prints the row.

Paper: Text Infilling (Zhu, Hu, Xing 2019), section "Long Content Infilling". It prints:

       Task  Blanks  Metric      Template  Seq2Seq    GAN  Self-attn
NBA reports       3  Perplexity         -   10.303  7.245      6.538
NBA reports       3  Human Eval         -    1.909  1.818      2.273

Command:
    python -m experiments.nba --data_dir=FOLDER_THAT_HOLDS_nba/
    python -m experiments.nba --preset=smoke
    python -m experiments.nba --masking=anchors_name_number --data_dir=FOLDER_THAT_HOLDS_nba/

The first takes the authors' own pairs of template and sentence, the second made-up sentences, for which it needs no
data; the third builds sentences from raw text and masks them by rule, which takes NLTK's tagger.
Expected: the row of the table, the paper's numbers beside ours, and three filled sentences.
Duration: said at the start.
"""

from experiments import experiment, flags

TASK = "nba"


def run(values) -> None:
    """Runs the row that the flags name and prints it."""
    experiment.run_task(values, TASK)


def define_flags(values) -> None:
    """Defines the flags of this command."""
    experiment.define_task_flags(values, TASK)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
