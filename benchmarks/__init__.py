"""Benchmarks of speed and memory: commands that each print a table."""
