"""The two protocols and the presets, as plain dicts of hyperparameters.

A protocol answers every question that the paper's text and the authors' code answer differently: `paper` (what the
text says, errors mended) and `released` (what the code did). A preset changes sizes, batch, optimizer and schedule,
epochs and patience only. Order of application: protocol, preset, single assignments (`--set`).
"""

from text_infilling.hparams import assign, flatten, merge

PAPER = {
    # Paper, appendix B.1: sizes of the self-attention model.
    "decoder": {
        "dim": 400,
        "num_blocks": 6,
        "num_heads": 8,
        "ffn_dim": 1600,
        "embedding_dropout": 0.1,
        "attention_dropout": 0.1,
        "residual_dropout": 0.1,
    },
    "template": {
        "segment_ids": "constant",  # or "renumbered" after each fill
        "mask_padding": True,  # False: padding is attended, so outputs depend on the batch
        "scale": True,  # template embeddings times sqrt(dim), as the answer's always are
    },
    "position": {
        "origin": "one",  # words count from 1, `<m>` and `<BOB>` at 0; or "zero": everything from 0
        "layout": "interleaved",  # sin and cos in turn; or "halves": sin half, then cos half
        "base": 256,  # pos = segment_id * base + offset_id
    },
    "answer": {"segment_ids": "own"},  # or "released": 2k + 1 in training, 1 in decoding
    "loss": {
        "label_smoothing": 0.1,
        "count_padding": False,  # True: padding positions count in the mean
    },
    "schedule": {
        "shape": "inverse_sqrt",  # or "linear": to 0 at the last step of the last epoch
        "constant": 0.3,  # of "inverse_sqrt" (paper, appendix A, "Optimizing")
        "peak": 1e-3,  # of "linear": the rate after warm-up
        "warmup_steps": 10000,
        "first_step": 1,  # 0: the first update has rate 0
    },
    "optimizer": {"beta_1": 0.9, "beta_2": 0.997, "epsilon": 1e-9},
    "decoding": {
        "beam_width": 1,
        "max_length": 0,  # tokens of an infill with its `<EOB>`; 0: twice the longest answer of train
        "forbid_special": True,  # no special token but `<EOB>` ever comes out
    },
    "train": {
        "epochs": 150,
        "batch_size": 200,
        "patience": 10,  # epochs without a better validation ppl; 0: never stop early
        "select": "best",  # checkpoint by validation ppl; or "last"
        "bucket_by_length": True,  # sentences of one length share a batch: no padding
        "min_count": 2,  # a word of the vocabulary occurs at least so often in train
        "resume_seconds": 60.0,  # a resume point at least so often
    },
}

RELEASED = {
    "decoder": {"dim": 512, "ffn_dim": 2048},
    "template": {"segment_ids": "renumbered", "mask_padding": False, "scale": False},
    "position": {"origin": "zero", "layout": "halves"},
    "answer": {"segment_ids": "released"},
    "loss": {"count_padding": True},
    "schedule": {"first_step": 0},
    "decoding": {"beam_width": 2, "max_length": 16, "forbid_special": False},
    "train": {"batch_size": 400, "patience": 0, "select": "last", "bucket_by_length": False},
}

PROTOCOLS = {"paper": PAPER, "released": merge(RELEASED, PAPER)}

PRESETS = {
    "full": {},
    "laptop": {
        "decoder": {"dim": 256, "num_blocks": 2, "ffn_dim": 1024},
        "schedule": {"shape": "linear", "peak": 2e-3, "warmup_steps": 300},
        "optimizer": {"beta_2": 0.98},
        "train": {"epochs": 3, "batch_size": 100, "patience": 0},
    },
    "smoke": {
        "decoder": {"dim": 128, "num_blocks": 2, "num_heads": 4, "ffn_dim": 512},
        "schedule": {"shape": "linear", "peak": 2e-3, "warmup_steps": 100},
        "optimizer": {"beta_2": 0.98},
        "train": {"epochs": 4, "batch_size": 100, "patience": 0},
    },
}

# What a preset changes further where a sentence has two blanks or more: more to learn, and more time for it.
PRESETS_OF_MORE_BLANKS = {"laptop": {"train": {"epochs": 5}}}

# The smallest value allowed, and what every value is less than.
RANGES = {
    **{f"decoder.{name}": (1, None) for name in ("dim", "num_blocks", "num_heads", "ffn_dim")},
    **{f"decoder.{name}_dropout": (0, 1) for name in ("embedding", "attention", "residual")},
    "position.base": (1, None),
    "loss.label_smoothing": (0, 1),
    "schedule.constant": (0, None),
    "schedule.peak": (0, None),
    "schedule.warmup_steps": (1, None),
    "schedule.first_step": (0, 2),
    "optimizer.beta_1": (0, 1),
    "optimizer.beta_2": (0, 1),
    "optimizer.epsilon": (0, None),
    "decoding.beam_width": (1, None),
    "decoding.max_length": (0, None),
    "train.epochs": (1, None),
    "train.batch_size": (1, None),
    "train.patience": (0, None),
    "train.min_count": (1, None),
    "train.resume_seconds": (0, None),
}
CHOICES = {
    "template.segment_ids": ("constant", "renumbered"),
    "position.origin": ("one", "zero"),
    "position.layout": ("interleaved", "halves"),
    "answer.segment_ids": ("own", "released"),
    "schedule.shape": ("inverse_sqrt", "linear"),
    "train.select": ("best", "last"),
}

# What changes how a run goes on, not what comes out: no difference between two configs of a cell.
NO_DIFFERENCE = ("train.resume_seconds",)


def run_hparams(protocol: str, preset: str, assignments: list[str] = (), blanks: int = 1) -> dict:
    """All hyperparameters of a run: protocol, then preset, then the `key=value` assignments in their order.

    Args:
        protocol: name in `PROTOCOLS`.
        preset: name in `PRESETS`.
        assignments: e.g. `["train.epochs=3"]`.
        blanks: of a sentence, which the epochs of a preset may depend on.

    Raises:
        ValueError: an unknown protocol or preset, an unknown key, or a value of the wrong type or out of its range.
    """
    for name, known, flag in ((protocol, PROTOCOLS, "--protocol"), (preset, PRESETS, "--preset")):
        if name not in known:
            raise ValueError(f"{flag} takes one of {', '.join(known)}. Received: {name!r}")
    hparams = merge(PRESETS[preset], PROTOCOLS[protocol])
    if blanks > 1:
        hparams = merge(PRESETS_OF_MORE_BLANKS.get(preset), hparams)
    for assignment in assignments:
        hparams = assign(hparams, assignment)
    check_values(hparams)
    return hparams


def check_values(hparams: dict) -> None:
    """Raises ValueError for the first value that is out of its range or none of its choices."""
    values = flatten(hparams)
    for key, (least, bound) in RANGES.items():
        if not (values[key] >= least and (bound is None or values[key] < bound)):  # also false for NaN
            expected = f"at least {least}" + ("" if bound is None else f" and less than {bound}")
            raise ValueError(f"{key} must be {expected}. Received: {key}={values[key]}")
    for key, known in CHOICES.items():
        if values[key] not in known:
            raise ValueError(f"{key} takes one of {', '.join(known)}. Received: {values[key]!r}")
    dim, heads = values["decoder.dim"], values["decoder.num_heads"]
    if dim % heads or dim % 2:
        raise ValueError(
            f"decoder.dim must be even and a multiple of num_heads. Received: dim={dim}, num_heads={heads}"
        )
