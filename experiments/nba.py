"""Fills long blanks in NBA reports that keep one name and one number per sentence, and prints the row of the table.

Paper: Text Infilling (Zhu, Hu, Xing 2019), section "Long Content Infilling". It prints:

       Task  Blanks  Metric      Template  Seq2Seq    GAN  Self-attn
NBA reports       3  Perplexity         -   10.303  7.245      6.538
NBA reports       3  Human Eval         -    1.909  1.818      2.273

Command:
    python -m experiments.nba --data_dir=FOLDER_THAT_CONTAINS_nba/
    python -m experiments.nba --preset=smoke
    python -m experiments.nba --masking=anchors_name_number --data_dir=FOLDER_THAT_CONTAINS_nba/

The commands use the authors' pairs, made-up sentences and sentences built from raw text, in this order; see
docs/reproduce.md.
Expected with the preset laptop and seed 1: ppl_paper 7.29 for Seq2Seq, 7.52 for GAN, 6.24 for Self-attn, all with the
same number of updates, unlike the paper's seq2seq. Duration on 2 cores: 8 to 12 minutes per model; smoke: 3 minutes
for all models.
"""

from experiments.cells import experiment, flags
from experiments.tables import paper

run, define_flags = experiment.command(paper.NBA)

if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
