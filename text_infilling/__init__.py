"""Text infilling with self-attention over templates: fill any number of blanks, anywhere in a text.

Reproduces "Text Infilling" (Zhu, Hu, Xing 2019). Start reading at `templates` (what a model sees) and `models` (what
fills the blanks).

    from text_infilling import FitConfig, Infiller, Limits, fit

    fit("my_texts.txt", "my_model", FitConfig(preset="smoke"))
    Infiller.load("my_model").fill("____ have a ____ , please .", limits=Limits(max_words=3)).text

TensorFlow's start-up lines are hidden, as in the commands; set `TF_CPP_MIN_LOG_LEVEL=0` to see them.
"""

import importlib
from typing import Any

from text_infilling.utils.quiet import quiet_tensorflow

# Public names and the modules that define them, which are imported at first use: TensorFlow takes seconds.
_PUBLIC = {
    "Infiller": "text_infilling.inference.infiller",
    "Limits": "text_infilling.inference.limits",
    "fit": "text_infilling.app.fitting",
    "FitConfig": "text_infilling.app.fit_config",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        quiet_tensorflow()
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
