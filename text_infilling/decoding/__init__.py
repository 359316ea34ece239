"""Decoding of infills: greedy search, beam search, constrained search and sampling, one blank at a time."""
