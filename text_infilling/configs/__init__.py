"""Hyperparameters: defaults, presets, protocols."""
