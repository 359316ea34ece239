"""BLEU and perplexity, each in the printed and in the clean definition."""
