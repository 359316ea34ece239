"""Text infilling with self-attention over templates: fill any number of blanks, anywhere in a text.

Reproduces "Text Infilling" (Zhu, Hu, Xing 2019). Start reading at `templates` (what a model sees) and `models` (what
fills the blanks).

    from text_infilling import Infiller
    Infiller.load("my_model").fill("____ have a ____ , please .").text
"""

import importlib

# Public names and the modules that define them, which are imported at first use: TensorFlow takes seconds.
_PUBLIC = {"Infiller": "text_infilling.inference.infiller", "Limits": "text_infilling.inference.limits"}
__all__ = list(_PUBLIC)


def __getattr__(name: str):
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
