"""Builders of the Grimm and NBA pairs from raw text."""
