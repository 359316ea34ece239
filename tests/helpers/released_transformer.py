"""The self-attention model with the weights of the original modules' golden vectors."""

import numpy as np

from text_infilling.configs.protocols import run_hparams
from text_infilling.models.registry import built_model


def released_model(data):
    sizes = {"dim": 32, "ffn_dim": 128, "num_blocks": data["num_blocks"], "num_heads": data["num_heads"]}
    assignments = [f"decoder.{name}={size}" for name, size in sizes.items()]
    model = built_model("self_attention", 50, run_hparams("released", "full", assignments))
    for variable, names in original_names(model):
        variable.assign(np.concatenate([data[f"w/{name}:0"] for name in names], axis=-1))
    return model


def original_names(model):
    """Returns each variable with the names of the original weights that are concatenated in it."""
    pairs = [(model.embedding, ["lookup_table/lookup_table"])]
    for i, block in enumerate(model.decoder.blocks):
        for part, norm, attention in (
            ("self_attention", block.norm_1, block.self_attention),
            ("encdec_attention", block.norm_2, block.template_attention),
        ):
            root = f"decoder/layer_{i}/{part}"
            pairs += [(norm.gamma, [f"{root}/ln/layer_norm_scale"]), (norm.beta, [f"{root}/ln/layer_norm_bias"])]
            heads = f"{root}/multihead_attention"
            pairs.append((attention.output_transform, [f"{heads}/output_transform/kernel"]))
            if part == "self_attention":
                pairs.append((attention.query_key_value, [f"{heads}/{x}/kernel" for x in "qkv"]))
            else:
                pairs.append((attention.query, [f"{heads}/q/kernel"]))
                pairs.append((attention.key_value, [f"{heads}/{x}/kernel" for x in "kv"]))
        root = f"decoder/layer_{i}/ffn"
        pairs += [
            (block.norm_3.gamma, [f"{root}/ln/layer_norm_scale"]),
            (block.norm_3.beta, [f"{root}/ln/layer_norm_bias"]),
            (block.feed_forward.expand.kernel, [f"{root}/conv1/kernel"]),
            (block.feed_forward.expand.bias, [f"{root}/conv1/bias"]),
            (block.feed_forward.contract.kernel, [f"{root}/conv2/kernel"]),
            (block.feed_forward.contract.bias, [f"{root}/conv2/bias"]),
        ]
    norm = model.decoder.norm
    return pairs + [(norm.gamma, ["decoder/ln/layer_norm_scale"]), (norm.beta, ["decoder/ln/layer_norm_bias"])]
