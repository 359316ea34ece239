"""The models that fill blanks, one per file.

`import text_infilling.models` registers them with Keras, so that `keras.saving.load_model` loads a `.keras` file.
"""

from text_infilling.models.registry import MODELS as MODELS
