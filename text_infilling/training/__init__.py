"""Schedule, callbacks, trainer, evaluation; presets and protocols as plain dicts."""
