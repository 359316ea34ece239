"""Tasks, trainer, phases, callbacks, resume points, schedule, evaluation."""
