"""Fills long blanks of NBA reports, where one name and one number are left, and prints the row.

Paper: Text Infilling (Zhu, Hu, Xing 2019), section "Long Content Infilling". It prints:

       Task  Blanks  Metric      Template  Seq2Seq    GAN  Self-attn
NBA reports       3  Perplexity         -   10.303  7.245      6.538
NBA reports       3  Human Eval         -    1.909  1.818      2.273

Command:
    python -m experiments.nba --data_dir=FOLDER_THAT_HOLDS_nba/
    python -m experiments.nba --preset=smoke
    python -m experiments.nba --masking=anchors_name_number --data_dir=FOLDER_THAT_HOLDS_nba/

They take the authors' pairs, made-up sentences, and sentences built from raw text: see the README.
Result with laptop, seed 1: ppl_paper 7.29 (Seq2Seq), 7.52 (GAN), 6.24 (Self-attn); all got the same number of updates,
which the paper's seq2seq did not. Duration on 2 cores: laptop 8 to 12 minutes a model, smoke 3 for
all.
"""

from experiments import experiment, flags

run, define_flags = experiment.command("nba")

if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
