"""Run folders: names of files, checks, opening."""
