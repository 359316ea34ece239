"""Text infilling with self-attention over templates: fill any number of blanks, anywhere in a text.

Reproduces "Text Infilling" (Zhu, Hu, Xing 2019). Begin with `templates` (what a blank is to a model) and
`models` (who fills it); the README says which file is which.
"""
