"""The paper's numbers, and tables of ours beside them."""
