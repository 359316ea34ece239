"""Presets: changes to a protocol for a budget, as plain dicts of hyperparameters.

A preset changes sizes, batch, optimizer and schedule, epochs and patience only. Values for all models are under "all",
values for one model under its name.
"""

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

# Changes per task to a preset. The training sets of the other tasks are at most a seventh of Yelp's, so `laptop` runs
# more epochs; the GAN, with its adversarial epoch, has as many as the others.
_EPOCHS = {
    "laptop": {"all": {"train": {"epochs": 6}}, "gan": {"train": {"epochs": 5}}},
    "smoke": {"all": {"train": {"epochs": 1}}},  # three blanks per sentence give enough to learn from
}
TASK_PRESETS = {
    "yelp": {
        "laptop": {
            "self_attention": {
                "decoder": {"num_blocks": 3},
                "schedule": {"peak": 5e-3},  # of matrices; of everything else half of it
                "optimizer": {"name": "muon", "adam_lr_ratio": 0.5, "ns_steps": 2, "weight_decay": 0.1},
                "train": {"epochs": 4, "batch_size": 150},
            },
        },
    },
    "grimm": _EPOCHS,
    "prepositions": _EPOCHS,
    "nba": _EPOCHS,
}

# Changes per task, applied last, if a sentence has two or more blanks: there is more to learn, so training is longer.
TASK_PRESETS_OF_MORE_BLANKS = {
    "yelp": {
        "laptop": {
            "self_attention": {"optimizer": {"ns_steps": 3}, "train": {"epochs": 6}},
            "seq2seq": {"train": {"epochs": 4}},
            "gan": {"train": {"epochs": 4}},
        },
    },
}
