"""The self-attention model with the `released` keys, compared with the original modules' golden vectors."""

import numpy as np
import pytest
from golden import check_close, check_losses_and_gradients, golden, golden_spans, words_before_end
from released_transformer import original_names, released_model

from text_infilling import templates
from text_infilling.decoding.beam import beam_search
from text_infilling.decoding.greedy import greedy_search
from text_infilling.decoding.loop import Infills


@pytest.mark.parametrize("blanks", [1, 2])
def test_templates_logits_losses_and_gradients(blanks):
    data = golden(f"transformer_blanks{blanks}")
    model = released_model(data)
    examples = templates.build_examples(*golden_spans(data), model.template_format)._asdict()

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
    template = templates.initial_template(*golden_spans(data), model.template_format)
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
        template = templates.fill_blank(template, infills.ids, infills.lengths, model.template_format)
        pack = f"beam{beam_width}/pack{k + 1}"
        np.testing.assert_array_equal(template.ids, data[f"{pack}/templates"])
        np.testing.assert_array_equal(template.segment_ids, data[f"{pack}/segment_ids"])
        np.testing.assert_array_equal(template.offset_ids, data[f"{pack}/offsets"])
