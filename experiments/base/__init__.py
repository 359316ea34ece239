"""What the base model helps with: corpora, an n-gram filler, the units of work, the page of results."""
