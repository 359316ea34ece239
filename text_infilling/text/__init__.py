"""Text to tokens and back, in Python and inside a graph."""
