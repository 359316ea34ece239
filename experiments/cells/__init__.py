"""One trained or scored entry of a table, and the runs that make it."""
