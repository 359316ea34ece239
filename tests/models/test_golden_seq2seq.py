"""The seq2seq model with the `released` keys, compared with the original modules' golden vectors."""

import numpy as np
import pytest
from golden import check_close, check_losses_and_gradients, golden, golden_spans, words_before_end

from text_infilling import templates
from text_infilling.configs.protocols import run_hparams
from text_infilling.decoding.greedy import greedy_search
from text_infilling.decoding.loop import Infills
from text_infilling.models.registry import built_model
from text_infilling.vocabulary import BLANK_ID, PAD_ID

DIM, UNITS, VOCAB = 16, 64, 50


def released_model(data):
    sizes = [f"embedder.dim={DIM}", f"encoder.units={UNITS}", f"decoder.units={UNITS}"]
    model = built_model("seq2seq", VOCAB, run_hparams("released", "full", sizes, model="seq2seq"))
    for variable, value in originals(model, data, "w"):
        variable.assign(value)
    return model


def gates(array):
    """Reorders gates from the original order i, j, f, o to the Keras order i, f, j, o."""
    i, j, f, o = np.split(array, 4, axis=-1)
    return np.concatenate([i, f, j, o], axis=-1)


def originals(model, data, kind):
    """Returns each variable with its golden weight ("w") or gradient ("grad")."""
    decoder = "basic_rnn_decoder/decoder"
    pairs = [
        (model.embedder.embedding, data[f"{kind}/lookup_table/lookup_table:0"]),
        (model.decoder.output_kernel, data[f"{kind}/{decoder}/dense/kernel:0"].T),
        (model.decoder.output_bias, data[f"{kind}/{decoder}/dense/bias:0"]),
    ]
    for lstm, root in (
        (model.encoder.lstm, "unidirectional_rnn_encoder/rnn/lstm_cell"),
        (model.decoder.lstm, f"{decoder}/lstm_cell"),
    ):
        kernel = gates(data[f"{kind}/{root}/kernel:0"])
        pairs += [
            (lstm.cell.kernel, kernel[:DIM]),
            (lstm.cell.recurrent_kernel, kernel[DIM:]),
            (lstm.cell.bias, gates(data[f"{kind}/{root}/bias:0"])),
        ]
    assert len(pairs) == len(model.trainable_variables)
    return pairs


@pytest.mark.parametrize("blanks", [1, 2])
def test_states_logits_losses_and_gradients(blanks):
    data = golden(f"seq2seq_blanks{blanks}")
    model = released_model(data)
    examples = templates.build_examples(*golden_spans(data), model.template_format)._asdict()

    for k in range(blanks):
        one = {name: tensor[:, k] for name, tensor in examples.items()}
        expected = data[f"hole{k}/encoder_outputs"]
        width = expected.shape[1]
        ids, segments, offsets = (one[f"template_{name}"] for name in ("ids", "segment_ids", "offset_ids"))
        inputs = model.embed(ids) + model.position_encoding(segments, offsets)
        outputs, (hidden, cell) = model.encoder(inputs, one["template_lengths"])
        # After the end of a row the original has zeros and Keras repeats the last output; neither is read.
        read = np.arange(width)[None, :, None] < np.reshape(one["template_lengths"], [-1, 1, 1])
        check_close(np.where(read, outputs[:, :width], 0), expected, 2e-6)
        check_close(hidden, data[f"hole{k}/encoder_state_h"], 2e-6)
        check_close(cell, data[f"hole{k}/encoder_state_c"], 2e-6)

        expected = data[f"hole{k}/logits"]
        logits = model.output(model.answer_states(one))[:, : expected.shape[1]]
        check_close(logits, expected, 2e-6)

    check_losses_and_gradients(data, model, examples, originals(model, data, "grad"))


@pytest.mark.parametrize("blanks", [1, 2])
def test_greedy_decoding_finds_the_original_ids(blanks):
    data = golden(f"seq2seq_blanks{blanks}")
    model = released_model(data)
    template = templates.initial_template(*golden_spans(data), model.template_format)
    rows = len(data["length"])
    for k in range(blanks):
        infills: Infills = greedy_search(
            model.step, model.start(template), rows, int(data["max_decoding_length"]), forbid_special=False
        )
        for row in range(rows):
            expected = words_before_end(data[f"infer/hole{k}/sample_id"][row])
            assert infills.ids[row, : infills.lengths[row]].numpy().tolist() == expected
        template = templates.fill_blank(template, infills.ids, infills.lengths, model.template_format)
        for row, expected in zip(template.ids.numpy(), data[f"infer/pack{k + 1}/text_ids"]):
            # In the original, an open blank has one `<m>` per word.
            collapsed = [x for x, before in zip(expected, [PAD_ID, *expected]) if not x == before == BLANK_ID]
            n = max(len(row), len(collapsed))
            np.testing.assert_array_equal(np.pad(row, (0, n - len(row))), np.pad(collapsed, (0, n - len(collapsed))))
    assert not np.any(template.blanks)
