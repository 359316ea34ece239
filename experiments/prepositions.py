"""Fills blanked prepositions and articles in Grimm's tales, and prints the row of our numbers.

Paper: Text Infilling (Zhu, Hu, Xing 2019), appendix "Preposition Infilling". It prints a sample and no numbers.

Command:
    python -m experiments.prepositions --data_dir=FOLDER_THAT_CONTAINS_grimm/
    python -m experiments.prepositions --preset=smoke
    python -m experiments.prepositions --masking=word_classes --data_dir=FOLDER_OF_TEXT_FILES

The commands use the authors' pairs, made-up sentences and sentences built from raw text, in this order; see
docs/reproduce.md.
Expected with the preset laptop and seed 1: bleu_paper 74.9 for Seq2Seq, 74.8 for GAN, 78.7 for Self-attn. Duration on
2 cores: 10 to 12 minutes per model; smoke: 3 minutes for all models.
"""

from experiments.cells import experiment, flags
from experiments.tables import paper

run, define_flags = experiment.command(paper.PREPOSITIONS)

if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
