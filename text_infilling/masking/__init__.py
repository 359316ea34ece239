"""Which words of a sentence become blanks."""
