"""All hyperparameters: the default, the limits and the meaning of each, in one table per group.

The defaults are those of the protocol `paper`. Layers, models, protocols and checks read these tables.
"""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple


class Key(NamedTuple):
    """A hyperparameter; for a list, the limits hold for each item.

    Attributes:
        default: value under the protocol `paper`; its type is the type of the hyperparameter.
        least: smallest allowed value; None: any.
        bound: exclusive upper limit; None: none.
        choices: the allowed values; empty: all between the limits.
    """

    default: Any
    least: float | None = None
    bound: float | None = None
    choices: tuple[str, ...] = ()


MAX_SEED = 2**31 - 1
HIGHEST = 2**31  # exclusive upper limit of keys without a closer one
MAX_SIZE = 2**16  # exclusive upper limit of layer sizes

TEMPLATE = {
    "segment_ids": Key("constant", choices=("constant", "renumbered")),  # "renumbered": after each fill
    "mask_padding": Key(True),  # False: padding is attended, so outputs depend on the batch
    # True: template embeddings are multiplied by sqrt(dim); in seq2seq and the GAN those of the answer too.
    # Self-attention always multiplies those of the answer.
    "scale": Key(True),
}
POSITION = {
    "origin": Key("one", choices=("one", "zero")),  # "one": words from 1, `<m>` and `<BOB>` at 0; "zero": all from 0
    # "interleaved": sine and cosine alternate; "halves": all sines, then all cosines
    "layout": Key("interleaved", choices=("interleaved", "halves")),
    # pos = segment_id * base + offset_id; larger than the longest segment, and its square is below the bound of int32
    "base": Key(256, 3, 2**15 + 1),
}
ANSWER = {
    "segment_ids": Key("own", choices=("own", "released")),  # "released": 2k + 1 in training, 1 in decoding
}
LOSS = {
    "label_smoothing": Key(0.1, 0, 1),
    "count_padding": Key(False),  # True: padding positions count in the mean
}
SCHEDULE = {
    # "linear": to 0 at the last step of the last epoch
    "shape": Key("inverse_sqrt", choices=("inverse_sqrt", "linear")),
    "scale": Key(0.3, 0, HIGHEST),  # of "inverse_sqrt" (paper, appendix A, "Optimizing")
    "peak": Key(1e-3, 0, HIGHEST),  # of "linear": the rate after warm-up
    "warmup_steps": Key(10000, 1, HIGHEST),
    "first_step": Key(1, 0, 2),  # the step that the first update counts as; 0: it has rate 0
}
OPTIMIZER = {
    # "muon" (Jordan et al. 2024; as in Keras, with the scale of Liu et al. 2025, arXiv:2502.16982): matrices are
    # updated by their orthogonalized momentum; word vectors, biases and norms by Adam.
    "name": Key("adam", choices=("adam", "muon")),
    "beta_1": Key(0.9, 0, 1),
    "beta_2": Key(0.997, 0, 1),
    "epsilon": Key(1e-9, 0, HIGHEST),
    "adam_lr_ratio": Key(1.0, 0, HIGHEST),  # of "muon": Adam's rate divided by that of matrices (the schedule's)
    "ns_steps": Key(5, 1, HIGHEST),  # of "muon": Newton-Schulz iterations that orthogonalize the momentum
    "weight_decay": Key(0.0, 0, HIGHEST),  # of "muon": of matrices, times the rate, each step
}
DECODING = {
    "beam_width": Key(1, 1, 1001),  # at most MOST_RESULTS of the infiller
    "max_length": Key(0, 0, 2**15 + 1),  # tokens of an infill with its `<EOB>`; 0: twice the longest answer of train
    "forbid_special": Key(True),  # special tokens except `<EOB>` are never generated
    "cut_at_special": Key(False),  # an infill ends before a `<PAD>` or `<EOS>` inside it when it is scored
}
TRAIN = {
    "epochs": Key(150, 1, HIGHEST),  # of the GAN: of pre-training
    "batch_size": Key(200, 1, HIGHEST),  # sentences
    "patience": Key(10, 0, HIGHEST),  # epochs without a better validation ppl; 0: never stop early
    "select": Key("best", choices=("best", "last")),  # checkpoint: "best" by validation ppl
    "bucket_by_length": Key(True),  # sentences of one length share a batch: no padding
    "min_count": Key(2, 1, HIGHEST),  # occurrences in train that a word of the vocabulary needs
    "word_dropout": Key(0.0, 0, HIGHEST),  # a: a word with n occurrences in train is learned as <UNK> in a / (a + n)
    "resume_seconds": Key(60.0, 0, HIGHEST),  # longest time between two resume points
}

# Paper, appendix B.1: sizes of the self-attention model.
TRANSFORMER_DECODER = {
    "dim": Key(400, 1, MAX_SIZE),
    "num_blocks": Key(6, 1, 1000),
    "num_heads": Key(8, 1, MAX_SIZE),
    "ffn_dim": Key(1600, 1, MAX_SIZE),
    "embedding_dropout": Key(0.1, 0, 1),  # rate for embedded templates and answers; applied by the model
    "drop_template": Key(True),  # False: no dropout on embedded templates
    "attention_dropout": Key(0.1, 0, 1),
    "residual_dropout": Key(0.1, 0, 1),  # rate after each part of a block, and inside the feed-forward network
}
# Paper, appendix B.1: sizes of seq2seq, and of the GAN's generator.
EMBEDDER = {"dim": Key(400, 1, MAX_SIZE)}
ENCODER = {
    "units": Key(1600, 1, MAX_SIZE),
    "dropout": Key(0.1, 0, 1),  # rate for the inputs
    # "sentence": reads as many positions as the true sentence has, at most the template's
    "length": Key("template", choices=("template", "sentence")),
}
RNN_DECODER = {
    "units": Key(1600, 1, MAX_SIZE),
    "dropout": Key(0.1, 0, 1),  # rate for inputs and outputs
    "drop_inputs": Key(True),  # False: dropout on outputs only
    # "released": the word at t >= 1 has segment 1 and offset t - 1, `<BOB>` no position
    "position": Key("own", choices=("own", "released")),
}
CLASSIFIER = {
    "kernel_sizes": Key([3, 4, 5], 1, 1001),
    "filters": Key(128, 1, MAX_SIZE),  # per kernel size
    "dropout": Key(0.5, 0, 1),  # rate for the maxima over time
}
GAN = {
    # "released": the discriminator sees truth only, the generator aims at 0
    "objective": Key("standard", choices=("standard", "released")),
    # How the adversarial loss reaches the generator: "straight_through" (one-hot infills, gradient of the
    # Gumbel-softmax), "reinforce" (sampled infills, log score as reward) or "soft" (soft infills, as in the authors'
    # code). To be confirmed by validation: python -m experiments.tune --model=gan
    "estimator": Key("straight_through", choices=("straight_through", "reinforce", "soft")),
    "weight": Key(0.1, 0, HIGHEST),  # of the adversarial loss relative to the generator's cross entropy
    "adversarial_epochs": Key(0.25, 0, HIGHEST),  # as a fraction of the pre-training epochs; at least one epoch
    # Temperature of the Gumbel-softmax. "phase": falls geometrically, step by step, and reaches the floor at the last
    # step of the adversarial phase; "epoch": halved every adversarial epoch until it reaches the floor
    "temperature_decay": Key("phase", choices=("phase", "epoch")),
    "temperature_start": Key(1.0, 1e-6, HIGHEST),
    "temperature_floor": Key(0.1, 1e-6, HIGHEST),
    # The phase in which the discriminator begins to learn; "pretraining": from the first step of training
    "discriminator_start": Key("adversarial", choices=("adversarial", "pretraining")),
    "generator_dropout": Key(False),  # True: the discriminator has dropout in the generator's loss too
    "discriminator_dim": Key(400, 1, MAX_SIZE),  # of the discriminator's own word embedding
    "discriminator_rate": Key(5e-4, 0, HIGHEST),  # learning rate of the discriminator's Adam
}

# Groups that every model reads, groups that training and decoding of every model read, and groups of one model.
SHARED = {"template": TEMPLATE, "position": POSITION, "answer": ANSWER, "loss": LOSS}
RUN = {"schedule": SCHEDULE, "optimizer": OPTIMIZER, "decoding": DECODING, "train": TRAIN}
_SEQ2SEQ = {"embedder": EMBEDDER, "encoder": ENCODER, "decoder": RNN_DECODER}
_OF_MODEL = {
    "self_attention": {"decoder": TRANSFORMER_DECODER},
    "seq2seq": _SEQ2SEQ,
    "gan": {**_SEQ2SEQ, "classifier": CLASSIFIER, "gan": GAN},
}
MODELS = tuple(_OF_MODEL)


def defaults(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of a table of keys, or of a table of groups.

    >>> defaults(EMBEDDER)
    {'dim': 400}
    >>> defaults({"embedder": EMBEDDER})
    {'embedder': {'dim': 400}}
    """
    return {name: copy.deepcopy(key.default) if isinstance(key, Key) else defaults(key) for name, key in keys.items()}


def model_keys(model: str) -> dict[str, dict[str, Key]]:
    """Returns the groups of keys that a model, one of `MODELS`, reads itself."""
    return {**_OF_MODEL[model], **SHARED}


def run_keys(model: str) -> dict[str, dict[str, Key]]:
    """Returns the groups of keys of a run of a model, one of `MODELS`."""
    return {**SHARED, **RUN, **_OF_MODEL[model]}
