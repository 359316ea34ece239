"""Corpora (found on disk, downloaded or generated) and the tf.data pipeline that feeds a model."""
