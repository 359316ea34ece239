"""The models that fill blanks, one per file."""
