"""One command for each family of the paper's tables."""
