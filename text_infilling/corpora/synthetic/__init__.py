"""Generated corpora, for functional checks without a download."""
