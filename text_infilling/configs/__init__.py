"""Hyperparameters: defaults, protocols, presets, checks."""
