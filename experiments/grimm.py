"""Fills long blanks in Grimm's tales that keep one noun and one verb per sentence, and prints the row of the table.

Paper: Text Infilling (Zhu, Hu, Xing 2019), section "Long Content Infilling". It prints:

         Task  Blanks  Metric      Template  Seq2Seq     GAN  Self-attn
Grimm's tales       3  Perplexity         -   10.411  11.784      9.647
Grimm's tales       3  Human Eval         -    1.991   1.338      2.664

Command:
    python -m experiments.grimm --data_dir=FOLDER_THAT_CONTAINS_grimm/
    python -m experiments.grimm --preset=smoke
    python -m experiments.grimm --masking=anchors_noun_verb --data_dir=FOLDER_OF_TEXT_FILES

The commands use the authors' pairs, made-up sentences and sentences built from raw text, in this order; see
docs/reproduce.md.
Expected with the preset laptop, seed 1 and the authors' pairs: perplexity 9.6 for Seq2Seq, 10.2 for GAN, 9.2 for
Self-attn. Duration on 2 cores: 5 to 12 minutes per model; smoke: 3 minutes for all models.
"""

from experiments.cells import experiment, flags
from experiments.tables import paper

run, define_flags = experiment.command(paper.GRIMM)

if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
