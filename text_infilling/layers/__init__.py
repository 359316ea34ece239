"""Keras layers, one public class a file."""
