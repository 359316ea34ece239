"""The command `text-infill`."""
