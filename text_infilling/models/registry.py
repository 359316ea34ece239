"""Models by name, and the function that builds one."""

from text_infilling.models.gan import GANModel
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.self_attention import SelfAttentionModel
from text_infilling.models.seq2seq import Seq2SeqModel

MODELS: dict[str, type[InfillingModel]] = {
    "self_attention": SelfAttentionModel,
    "seq2seq": Seq2SeqModel,
    "gan": GANModel,
}


def built_model(name: str, vocabulary_size: int, hparams: dict, dtype: str = "float32") -> InfillingModel:
    """Builds a model with fresh weights.

    Args:
        name: one of `MODELS`.
        vocabulary_size: number of words and special tokens.
        hparams: hyperparameters of a run, which include those of the model.
        dtype: dtype of the computation.
    """
    cls = MODELS[name]
    model = cls(vocabulary_size, {key: hparams[key] for key in cls.default_hparams()}, dtype=dtype)
    model.build()
    return model
