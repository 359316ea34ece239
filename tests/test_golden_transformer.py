"""The self-attention model with the `released` keys, compared with the original modules' golden vectors."""

import numpy as np
import pytest
from golden import check_close, check_losses_and_gradients, golden, golden_spans, words_before_end

from text_infilling import templates
from text_infilling.decoding.beam import beam_search
from text_infilling.decoding.greedy import Infills, greedy_search
from text_infilling.models.registry import built_model
from text_infilling.training.protocols import run_hparams


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


@pytest.mark.parametrize("blanks", [1, 2])
def test_templates_logits_losses_and_gradients(blanks):
    data = golden(f"transformer_blanks{blanks}")
    model = released_model(data)
    examples = templates.build_examples(*golden_spans(data), model.protocol)._asdict()

    width = data["template0/templates"].shape[1]
    np.testing.assert_array_equal(examples["template_ids"][:, 0, :width], data["template0/templates"])
    np.testing.assert_array_equal(examples["template_segment_ids"][:, 0, :width], data["template0/segment_ids"])
    np.testing.assert_array_equal(examples["template_offset_ids"][:, 0, :width], data["template0/offsets"])
    assert set(examples["template_lengths"][:, 0].numpy()) == {width}

    for k in range(blanks):
        one = {name: tensor[:, k] for name, tensor in examples.items()}
        expected = data[f"hole{k}/logits"]
        logits = model.output(model.answer_states(one))[:, : expected.shape[1]]
        check_close(logits, expected, 2e-6)

    pairs = [
        (variable, np.concatenate([data[f"grad/{name}:0"] for name in names], axis=-1))
        for variable, names in original_names(model)
    ]
    check_losses_and_gradients(data, model, examples, pairs)


@pytest.mark.parametrize("beam_width", [1, 2])
@pytest.mark.parametrize("blanks", [1, 2])
def test_decoding_finds_the_original_ids(blanks, beam_width):
    data = golden(f"transformer_blanks{blanks}")
    model = released_model(data)
    max_length = int(data["max_decode_len"])
    template = templates.initial_template(*golden_spans(data), model.protocol)
    for k in range(blanks):
        state = model.start(template)
        rows = len(data["length"])
        if beam_width == 1:
            infills = greedy_search(model.step, state, rows, max_length, forbid_special=False)
        else:
            n_best = beam_search(model.step, state, rows, max_length, beam_width, forbid_special=False)
            check_close(n_best.scores, data[f"beam2/hole{k}/log_probs"], 2e-6)
            for row in range(rows):
                for rank in range(beam_width):
                    expected = words_before_end(data[f"beam2/hole{k}/sampled_ids"][row, rank])
                    assert n_best.ids[row, rank, : n_best.lengths[row, rank]].numpy().tolist() == expected
            infills = Infills(n_best.ids[:, 0], n_best.lengths[:, 0], n_best.scores[:, 0], n_best.positions)
        for row in range(rows):
            expected = words_before_end(data[f"beam{beam_width}/hole{k}/sampled_ids"][row, 0])
            assert infills.ids[row, : infills.lengths[row]].numpy().tolist() == expected
        template = templates.fill_blank(template, infills.ids, infills.lengths, model.protocol)
        pack = f"beam{beam_width}/pack{k + 1}"
        np.testing.assert_array_equal(template.ids, data[f"{pack}/templates"])
        np.testing.assert_array_equal(template.segment_ids, data[f"{pack}/segment_ids"])
        np.testing.assert_array_equal(template.offset_ids, data[f"{pack}/offsets"])
