"""Corpora: the paper's, your own texts, synthetic ones."""
