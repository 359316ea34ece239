"""Filling the blanks of texts with a trained model; export."""
