"""The two protocols and the presets, as plain dicts of hyperparameters.

A protocol answers every question that the paper's text and the authors' code answer differently: `paper` (what the
text says, with its errors fixed) and `released` (what the code did). A preset changes sizes, batch, optimizer and
schedule, epochs and patience only. Values for all models are under "all", values for one model under its name.
Order of application: protocol, preset, single assignments (`--set`).
"""

from collections.abc import Sequence

from text_infilling.hparams import assign, differences, flatten, merge
from text_infilling.utils import files

# Paper, appendix B.1: sizes of seq2seq, and of the GAN's generator.
_SEQ2SEQ = {
    "embedder": {"dim": 400},
    "encoder": {
        "units": 1600,
        "dropout": 0.1,
        "length": "template",  # or "sentence": reads as many positions as the true sentence has, at most the template's
    },
    "decoder": {
        "units": 1600,
        "dropout": 0.1,
        "position": "own",  # or "released": the word at t >= 1 has segment 1 and offset t - 1, `<BOB>` no position
        "attention": "none",
    },
}

PAPER = {
    "all": {
        "template": {
            "segment_ids": "constant",  # or "renumbered" after each fill
            "mask_padding": True,  # False: padding is attended, so outputs depend on the batch
            "scale": True,  # template embeddings times sqrt(dim), as self-attention's answer always is; seq2seq: both
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
        "optimizer": {
            # Or "muon" (Jordan et al. 2024; as Keras has it, with the scale of Liu et al. 2025, arXiv:2502.16982): a
            # matrix moves by its momentum made orthogonal; the vectors of words, biases and norms move by Adam.
            "name": "adam",
            "beta_1": 0.9,
            "beta_2": 0.997,
            "epsilon": 1e-9,
            "adam_lr_ratio": 1.0,  # of "muon": the rate of what Adam moves over that of matrices, the schedule's
            "ns_steps": 5,  # of "muon": Newton-Schulz iterations that make the momentum orthogonal
            "weight_decay": 0.0,  # of "muon": of matrices, times the rate, each step
        },
        "decoding": {
            "beam_width": 1,
            "max_length": 0,  # tokens of an infill with its `<EOB>`; 0: twice the longest answer of train
            "forbid_special": True,  # special tokens except `<EOB>` are never generated
        },
        "train": {
            "epochs": 150,  # of the GAN: of pre-training
            "batch_size": 200,
            "patience": 10,  # epochs without a better validation ppl; 0: never stop early
            "select": "best",  # checkpoint by validation ppl; or "last"
            "bucket_by_length": True,  # sentences of one length share a batch: no padding
            "min_count": 2,  # occurrences in train that a word of the vocabulary needs
            "word_dropout": 0.0,  # a: of n occurrences in train, a share of a / (a + n) is learned as <UNK>
            "resume_seconds": 60.0,  # longest time between two resume points
        },
    },
    # Paper, appendix B.1: sizes of the self-attention model.
    "self_attention": {
        "decoder": {
            "dim": 400,
            "num_blocks": 6,
            "num_heads": 8,
            "ffn_dim": 1600,
            "embedding_dropout": 0.1,
            "attention_dropout": 0.1,
            "residual_dropout": 0.1,
        },
    },
    "seq2seq": _SEQ2SEQ,
    "gan": {
        **_SEQ2SEQ,
        "classifier": {"kernel_sizes": [3, 4, 5], "filters": 128, "dropout": 0.5},
        "gan": {
            "objective": "standard",  # or "released": the discriminator sees truth only, the generator aims at 0
            "weight": 0.1,  # of the adversarial loss beside the generator's cross entropy
            "adversarial_epochs": 0.25,  # of the epochs that pre-training ran; at least one
            "temperature_floor": 0.1,  # of the Gumbel-softmax; from 1 it is halved each adversarial epoch
            "discriminator_dim": 400,  # of the discriminator's own embedding
            "discriminator_rate": 5e-4,  # learning rate of its Adam
        },
    },
}

_RELEASED_SEQ2SEQ = {
    "embedder": {"dim": 512},
    "encoder": {"units": 2048, "length": "sentence"},
    "decoder": {"units": 2048, "position": "released"},
    "schedule": {"constant": 1.0},
    "decoding": {"beam_width": 1, "max_length": 18},
}
RELEASED = {
    "all": {
        "template": {"segment_ids": "renumbered", "mask_padding": False, "scale": False},
        "position": {"origin": "zero", "layout": "halves"},
        "answer": {"segment_ids": "released"},
        "loss": {"count_padding": True},
        "schedule": {"first_step": 0},
        "decoding": {"beam_width": 2, "max_length": 16, "forbid_special": False},
        "train": {"batch_size": 400, "patience": 0, "select": "last", "bucket_by_length": False},
    },
    "self_attention": {"decoder": {"dim": 512, "ffn_dim": 2048}},
    "seq2seq": _RELEASED_SEQ2SEQ,
    "gan": {
        **_RELEASED_SEQ2SEQ,
        "gan": {"objective": "released", "weight": 1e-4, "temperature_floor": 0.001, "discriminator_dim": 512},
        # Pre-training is 80% of 150 epochs.
        "train": {"epochs": 120, "batch_size": 250},
    },
}

# NBA's learning rates are those of 400 dimensions.
_NBA_SEQ2SEQ = {
    "embedder": {"dim": 400},
    "encoder": {"units": 1600},
    "decoder": {"units": 1600},
    "schedule": {"constant": 0.3},
}

MAX_SEED = 2**31 - 1
MODELS = ("self_attention", "seq2seq", "gan")
PROTOCOLS = ("paper", "released")

_LAPTOP_SEQ2SEQ = {"embedder": {"dim": 128}, "encoder": {"units": 384}, "decoder": {"units": 384}}
_SMOKE_SEQ2SEQ = {"embedder": {"dim": 64}, "encoder": {"units": 128}, "decoder": {"units": 128}}
PRESETS = {
    "full": {},
    "laptop": {
        "all": {
            "schedule": {"shape": "linear", "peak": 2e-3, "warmup_steps": 300},
            "optimizer": {"beta_2": 0.98},
            "train": {"epochs": 3, "batch_size": 100, "patience": 0},
        },
        "self_attention": {"decoder": {"dim": 256, "num_blocks": 2, "ffn_dim": 1024}},
        "seq2seq": _LAPTOP_SEQ2SEQ,
        "gan": {**_LAPTOP_SEQ2SEQ, "gan": {"discriminator_dim": 64}, "train": {"epochs": 2}},
    },
    "smoke": {
        "all": {
            "schedule": {"shape": "linear", "peak": 2e-3, "warmup_steps": 100},
            "optimizer": {"beta_2": 0.98},
            "train": {"epochs": 2, "batch_size": 50, "patience": 0},
        },
        "self_attention": {"decoder": {"dim": 128, "num_blocks": 2, "num_heads": 4, "ffn_dim": 512}},
        "seq2seq": _SMOKE_SEQ2SEQ,
        "gan": {**_SMOKE_SEQ2SEQ, "gan": {"discriminator_dim": 64}, "train": {"epochs": 1}},
    },
}

# Changes per task to a protocol or preset; "own" is for custom texts. FIDELITY, keys 1, 2, 19, 22; of the
# vocabulary, section "Data". The other training sets are a seventh of Yelp's or less, so `laptop` runs more epochs;
# the GAN, with its adversarial one, as many as the others.
_ALL_WORDS = {"paper": {"all": {"train": {"min_count": 1}}}}
_EPOCHS = {
    "laptop": {"all": {"train": {"epochs": 6}}, "gan": {"train": {"epochs": 5}}},
    "smoke": {"all": {"train": {"epochs": 1}}},  # three blanks are as much to learn from
}
TASKS = {
    "own": {},
    "yelp": {
        "laptop": {
            "self_attention": {
                "decoder": {"num_blocks": 3},
                "schedule": {"peak": 5e-3},  # of matrices; of all else half of it
                "optimizer": {"name": "muon", "adam_lr_ratio": 0.5, "ns_steps": 2, "weight_decay": 0.1},
                "train": {"epochs": 4, "batch_size": 150},
            },
        },
    },
    "grimm": {
        **_ALL_WORDS,
        "released": {
            "all": {"schedule": {"constant": 0.08}, "train": {"batch_size": 150, "epochs": 350}},
            "seq2seq": {"schedule": {"constant": 0.08}},
            "gan": {
                "gan": {"weight": 0.1},
                "schedule": {"constant": 0.08},
                "train": {"batch_size": 150, "epochs": 280},
            },
        },
        **_EPOCHS,
    },
    "prepositions": {
        **_ALL_WORDS,
        "released": {
            "all": {"train": {"batch_size": 400, "epochs": 350}},
            "seq2seq": {"schedule": {"constant": 0.3}},
            "gan": {
                "gan": {"weight": 0.1},
                "schedule": {"constant": 0.3},
                "train": {"batch_size": 150, "epochs": 120},
            },
        },
        **_EPOCHS,
    },
    "nba": {
        **_ALL_WORDS,
        "released": {
            "all": {"train": {"batch_size": 200}},
            "self_attention": {"decoder": {"dim": 400, "ffn_dim": 1600}},
            "seq2seq": {**_NBA_SEQ2SEQ, "train": {"batch_size": 500}},
            "gan": {
                **_NBA_SEQ2SEQ,
                "gan": {"weight": 0.1, "discriminator_dim": 400},
                "train": {"batch_size": 200, "epochs": 120},
            },
        },
        **_EPOCHS,
    },
}

# Changes per task after those if a sentence has two or more blanks: there is more to learn, so training is longer.
TASKS_OF_MORE_BLANKS = {
    "yelp": {
        "laptop": {
            "self_attention": {"optimizer": {"ns_steps": 3}, "train": {"epochs": 6}},
            "seq2seq": {"train": {"epochs": 4}},
            "gan": {"train": {"epochs": 4}},
        },
    },
}

# Smallest allowed value, and exclusive upper bound; keys that a model lacks are not checked.
HIGHEST = 2**31  # bound of keys without a closer one
RANGES = {
    **{f"decoder.{name}": (1, 2**16) for name in ("dim", "num_heads", "ffn_dim", "units")},
    **{f"decoder.{name}": (0, 1) for name in ("embedding_dropout", "attention_dropout", "residual_dropout", "dropout")},
    "decoder.num_blocks": (1, 1000),
    "embedder.dim": (1, 2**16),
    "encoder.units": (1, 2**16),
    "encoder.dropout": (0, 1),
    "classifier.filters": (1, 2**16),
    "classifier.dropout": (0, 1),
    "gan.weight": (0, HIGHEST),
    "gan.adversarial_epochs": (0, HIGHEST),
    "gan.temperature_floor": (1e-6, HIGHEST),
    "gan.discriminator_dim": (1, 2**16),
    "gan.discriminator_rate": (0, HIGHEST),
    "position.base": (3, 2**15 + 1),  # its square is above any position, which is int32
    "loss.label_smoothing": (0, 1),
    "schedule.constant": (0, HIGHEST),
    "schedule.peak": (0, HIGHEST),
    "schedule.warmup_steps": (1, HIGHEST),
    "schedule.first_step": (0, 2),
    "optimizer.beta_1": (0, 1),
    "optimizer.beta_2": (0, 1),
    "optimizer.epsilon": (0, HIGHEST),
    "optimizer.adam_lr_ratio": (0, HIGHEST),
    "optimizer.ns_steps": (1, HIGHEST),
    "optimizer.weight_decay": (0, HIGHEST),
    "decoding.beam_width": (1, 1001),  # at most MOST_RESULTS of the infiller
    "decoding.max_length": (0, 2**15 + 1),
    "train.epochs": (1, HIGHEST),
    "train.batch_size": (1, HIGHEST),
    "train.patience": (0, HIGHEST),
    "train.min_count": (1, HIGHEST),
    "train.word_dropout": (0, HIGHEST),
    "train.resume_seconds": (0, HIGHEST),
}
CHOICES = {
    "encoder.length": ("template", "sentence"),
    "decoder.position": ("own", "released"),
    "decoder.attention": ("none",),  # neither the paper's appendix nor the code has one
    "gan.objective": ("standard", "released"),
    "optimizer.name": ("adam", "muon"),
    "template.segment_ids": ("constant", "renumbered"),
    "position.origin": ("one", "zero"),
    "position.layout": ("interleaved", "halves"),
    "answer.segment_ids": ("own", "released"),
    "schedule.shape": ("inverse_sqrt", "linear"),
    "train.select": ("best", "last"),
}

# Keys that do not affect the result; ignored in the comparison of the configs of two runs.
NO_DIFFERENCE = ("hparams.train.resume_seconds",)
# Values that were fixed before they became hyperparameters; older configs lack these keys.
ONCE_FIXED = {
    f"hparams.optimizer.{name}": PAPER["all"]["optimizer"][name]
    for name in ("name", "adam_lr_ratio", "ns_steps", "weight_decay")
}
ONCE_FIXED["hparams.train.word_dropout"] = PAPER["all"]["train"]["word_dropout"]


def run_hparams(
    protocol: str,
    preset: str,
    assignments: Sequence[str] = (),
    blanks: int = 1,
    model: str = "self_attention",
    models: Sequence[str] = (),
    task: str = "own",
) -> dict:
    """Returns all hyperparameters of a run of one model: protocol, preset, then the assignments in their order.

    The changes of a task to a protocol or a preset are applied directly after it.

    Args:
        protocol: name in `PROTOCOLS`.
        preset: name in `PRESETS`.
        assignments: e.g. `["train.epochs=3"]`.
        blanks: blanks per sentence; the epochs of a preset may depend on it.
        model: name in `MODELS`.
        models: models of the same command: an assignment that only the others have is ignored.
        task: name in `TASKS`.

    Raises:
        ValueError: an unknown protocol, preset or model, an unknown key, or a value of the wrong type or out of its
            range.
    """
    for name, known, flag in (
        (protocol, PROTOCOLS, "--protocol"),
        (preset, PRESETS, "--preset"),
        (model, MODELS, "--models"),
    ):
        if name not in known:
            raise ValueError(f"{flag} takes one of {', '.join(known)}. Received: {name!r}")
    of_task = TASKS[task]
    parts = [of_task.get("paper", {})]
    if protocol == "released":
        parts += [RELEASED, of_task.get("released", {})]
    parts += [PRESETS[preset], of_task.get(preset, {})]
    if blanks > 1:
        parts.append(TASKS_OF_MORE_BLANKS.get(task, {}).get(preset, {}))
    hparams = _defaults(model)
    for part in parts:
        hparams = merge(part.get(model), merge(part.get("all"), hparams))
    for assignment in assignments:
        key = assignment.partition("=")[0].strip()
        if key in flatten(hparams) or not any(key in flatten(_defaults(other)) for other in models):
            hparams = assign(hparams, assignment)
    check_values(hparams)
    return hparams


def flat_config(config: dict) -> dict:
    """Returns a run's config, or a part of it, by dotted keys; adds the fixed values that older configs lack."""
    flat = flatten(config)
    for key, value in ONCE_FIXED.items():
        group = key.rpartition(".")[0] + "."
        if any(other.startswith(group) for other in flat):
            flat.setdefault(key, value)
    return flat


def config_differences(one: dict, other: dict) -> list[str]:
    """Returns the sorted dotted keys in which the configs of two runs, or the same parts of them, differ."""
    return [key for key in differences(flat_config(one), flat_config(other)) if key not in NO_DIFFERENCE]


def _defaults(model: str) -> dict:
    return {**PAPER["all"], **PAPER[model]}


def check_hparams(model: str, hparams: dict) -> None:
    """Checks the stored hyperparameters of a run.

    Raises:
        ValueError: a key is unknown or missing, or a value has the wrong type, is out of range or not a valid choice.
    """
    defaults = _defaults(model)
    check_values(merge(hparams, defaults))
    missing = flat_config({"hparams": defaults}).keys() - flat_config({"hparams": hparams}).keys()
    if missing:
        raise ValueError(f"it has no {min(missing)}")


def check_values(hparams: dict) -> None:
    """Raises ValueError for the first value that is out of range or not a valid choice."""
    values = flatten(hparams)
    for key, (least, bound) in RANGES.items():
        if key in values and not least <= values[key] < bound:  # also for NaN
            raise ValueError(
                f"{key} must be at least {least} and less than {bound}. Received: {key}={files.shown(values[key])}"
            )
    for key, known in CHOICES.items():
        if key in values and values[key] not in known:
            raise ValueError(f"{key} takes one of {', '.join(known)}. Received: {files.shown(values[key])}")
    if "decoder.num_heads" in values:
        dim, heads = values["decoder.dim"], values["decoder.num_heads"]
        if dim % heads or dim % 2:
            raise ValueError(
                f"decoder.dim must be even and a multiple of num_heads. Received: dim={dim}, num_heads={heads}"
            )
    if values.get("embedder.dim", 0) % 2:
        raise ValueError(f"embedder.dim must be even. Received: dim={values['embedder.dim']}")
    if "encoder.units" in values and values["encoder.units"] != values["decoder.units"]:
        raise ValueError(
            "decoder.units must equal encoder.units, whose state it goes on from. "
            f"Received: encoder.units={values['encoder.units']}, decoder.units={values['decoder.units']}"
        )
    sizes = values.get("classifier.kernel_sizes", [1])
    if not 1 <= len(sizes) <= 100 or min(sizes) < 1 or max(sizes) > 1000:
        raise ValueError(
            "classifier.kernel_sizes must be 1 to 100 sizes, at least 1 and at most 1000 each. "
            f"Received: kernel_sizes={files.shown(sizes)}"
        )
