"""Fills in the prepositions and articles of Grimm's tales, and prints a row of our numbers.

Paper: Text Infilling (Zhu, Hu, Xing 2019), appendix "Preposition Infilling". It prints a sample and no numbers.

Command:
    python -m experiments.prepositions --data_dir=FOLDER_THAT_HOLDS_grimm/
    python -m experiments.prepositions --preset=smoke
    python -m experiments.prepositions --masking=word_classes --data_dir=FOLDER_OF_TEXT_FILES

They take the authors' pairs, made-up sentences, and sentences built from raw text: see the README.
Result with laptop, seed 1: bleu_paper 74.9 (Seq2Seq), 74.8 (GAN), 78.7 (Self-attn). Duration on 2 cores: laptop 10 to
12 minutes a model, smoke 3 minutes for all.
"""

from experiments import experiment, flags

run, define_flags = experiment.command("prepositions")

if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
