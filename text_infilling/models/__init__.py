"""The models that fill blanks, one a file."""
