"""Files, progress, commands, tables: what any package may use."""
