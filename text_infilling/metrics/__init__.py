"""Metrics: BLEU and perplexity, each as the paper computes it and in a clean definition, and diversity."""
