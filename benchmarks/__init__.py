"""Speed and memory, each a command that prints a table."""
