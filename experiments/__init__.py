"""Commands that run the paper's experiments, one per family of tables, and make the tables of results."""
