"""Imported once by the process that `benchmarks.process_faults` forks its commands from."""

import importlib

from text_infilling.utils.quiet import quiet_tensorflow

quiet_tensorflow()  # before TensorFlow is imported
for name in (
    "text_infilling.app.cli", "text_infilling.app.fitting", "text_infilling.inference.infiller",
    "text_infilling.training.trainer", "experiments.yelp", "experiments.cells.experiment",
):  # fmt: skip
    importlib.import_module(name)
