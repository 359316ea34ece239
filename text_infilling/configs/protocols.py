"""The two protocols, as plain dicts of hyperparameters, and the hyperparameters of a run.

A protocol settles every question that the paper's text and the authors' code answer differently: `paper` (what the text
says, with its errors fixed; the defaults in `defaults`) and `released` (what the code did, as changes to `paper`).
Values for all models are under "all", values for one model under its name.
Order of application: protocol, preset, single assignments (`--set`).
"""

from collections.abc import Sequence

from text_infilling.configs.checks import check_values
from text_infilling.configs.defaults import MODELS, defaults, run_keys
from text_infilling.configs.presets import PRESETS, TASK_PRESETS
from text_infilling.hparams import assign, flatten, merge

PROTOCOLS = ("paper", "released")

_RELEASED_SEQ2SEQ = {
    "embedder": {"dim": 512},
    "encoder": {"units": 2048, "length": "sentence", "dropout": 0.0},
    "decoder": {"units": 2048, "position": "released", "drop_inputs": False},
    "schedule": {"scale": 1.0},
    "decoding": {"beam_width": 1, "max_length": 18},
}
RELEASED = {
    "all": {
        "template": {"segment_ids": "renumbered", "mask_padding": False, "scale": False},
        "position": {"origin": "zero", "layout": "halves"},
        "answer": {"segment_ids": "released"},
        "loss": {"count_padding": True},
        "schedule": {"first_step": 0},
        "decoding": {"beam_width": 2, "max_length": 16, "forbid_special": False, "cut_at_special": True},
        "train": {"batch_size": 400, "patience": 0, "select": "last", "bucket_by_length": False},
    },
    "self_attention": {"decoder": {"dim": 512, "ffn_dim": 2048, "drop_template": False}},
    "seq2seq": _RELEASED_SEQ2SEQ,
    "gan": {
        **_RELEASED_SEQ2SEQ,
        "gan": {
            "objective": "released",
            "estimator": "soft",
            "weight": 1e-4,
            "adversarial_epochs": 0.24,  # 121 + 29 epochs
            "temperature_decay": "epoch",
            "temperature_start": 0.5,
            "temperature_floor": 0.001,
            "discriminator_start": "pretraining",
            "generator_dropout": True,
            "discriminator_dim": 512,
        },
        # The adversarial phase begins once more than 80% of 150 epochs are over.
        "train": {"epochs": 121, "batch_size": 250},
    },
}

# NBA's learning rates are those of 400 dimensions.
_NBA_SEQ2SEQ = {
    "embedder": {"dim": 400},
    "encoder": {"units": 1600},
    "decoder": {"units": 1600},
    "schedule": {"scale": 0.3},
}

# Changes per task to a protocol; "own" is for custom texts. Source: docs/fidelity.md, rows 1 to 3, 17, 24 and 25.
_ALL_WORDS = {"all": {"train": {"min_count": 1}}}
TASKS = {
    "own": {},
    "yelp": {},
    "grimm": {
        "paper": _ALL_WORDS,
        "released": {
            "all": {"schedule": {"scale": 0.08}, "train": {"batch_size": 150, "epochs": 350}},
            "seq2seq": {"schedule": {"scale": 0.08}},
            "gan": {
                "gan": {"weight": 0.1, "adversarial_epochs": 0.2456},  # 281 + 69 epochs
                "schedule": {"scale": 0.08},
                "train": {"batch_size": 150, "epochs": 281},
            },
        },
    },
    "prepositions": {
        "paper": _ALL_WORDS,
        "released": {
            "all": {"train": {"batch_size": 400, "epochs": 350}},
            "seq2seq": {"schedule": {"scale": 0.3}},
            "gan": {
                "gan": {"weight": 0.1},
                "schedule": {"scale": 0.3},
                "train": {"batch_size": 150, "epochs": 121},
            },
        },
    },
    "nba": {
        "paper": _ALL_WORDS,
        "released": {
            "all": {"train": {"batch_size": 200}},
            "self_attention": {"decoder": {"dim": 400, "ffn_dim": 1600}},
            "seq2seq": {**_NBA_SEQ2SEQ, "train": {"batch_size": 500}},
            "gan": {
                **_NBA_SEQ2SEQ,
                "gan": {"weight": 0.1, "discriminator_dim": 400},
                "train": {"batch_size": 200, "epochs": 121},
            },
        },
    },
}


def run_hparams(
    protocol: str,
    preset: str,
    assignments: Sequence[str] = (),
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
        model: name in `MODELS`.
        models: models of the same command: an assignment that only the others have is ignored.
        task: name in `TASKS`.

    Raises:
        ValueError: an unknown protocol, preset or model, an unknown key, or a value of the wrong type or out of its
            range.

    >>> run_hparams("paper", "laptop", ["train.epochs=1"], model="seq2seq")["train"]["epochs"]
    1
    """
    for argument, name, known in (
        ("protocol", protocol, PROTOCOLS),
        ("preset", preset, PRESETS),
        ("model", model, MODELS),
    ):
        if name not in known:
            raise ValueError(f"{argument} must be one of {', '.join(known)}. Received: {name!r}")
    of_task = TASKS[task]
    parts = [of_task.get("paper", {})]
    if protocol == "released":
        parts += [RELEASED, of_task.get("released", {})]
    parts += [PRESETS[preset], TASK_PRESETS.get(task, {}).get(preset, {})]
    hparams = defaults(run_keys(model))
    for part in parts:
        hparams = merge(part.get(model), merge(part.get("all"), hparams))
    for assignment in assignments:
        key = assignment.partition("=")[0].strip()
        if key in flatten(hparams) or not any(key in flatten(run_keys(other)) for other in models):
            hparams = assign(hparams, assignment)
    check_values(hparams)
    return hparams
