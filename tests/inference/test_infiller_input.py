"""Input of the infiller: arguments and hostile text, each handled correctly or a clear error."""

import math

import numpy as np
import pytest
from infilling_runs import TEXT, blanks_of, write_run

from text_infilling.inference.infiller import Infiller

# Arguments.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": 3}, "texts must be a string or a list of strings"),
        ({"texts": ["so", None]}, "texts must be a string or a list of strings"),
        ({"texts": b"so"}, "texts must be a string or a list of strings"),
        ({"num_results": 0}, "num_results must be a whole number from 1"),
        ({"num_results": 10**9}, "num_results must be a whole number from 1 to 1000"),
        ({"beam_width": 2, "num_results": 3}, "beam_width must be a whole number from 3"),
        ({"beam_width": 2, "seed": 1}, "beam_width cannot be combined with samples"),
        ({"temperature": 0}, "temperature must be a number above 0"),
        ({"temperature": math.nan}, "temperature must be a number above 0"),
        ({"temperature": math.inf}, "temperature must be a number above 0"),
        ({"temperature": 1e-46}, "temperature must be from 1e-30 to 1e.30. Received: temperature=1e-46"),
        ({"temperature": 1e39}, "temperature must be from 1e-30 to 1e.30. Received: temperature=1e.39"),
        ({"temperature": 10**400}, "temperature must be from 1e-30 to 1e.30"),
        ({"top_p": 1e-50}, "top_p must be from 1e-30 to 1. Received: top_p=1e-50"),
        ({"top_p": 1.5}, "top_p must be from 1e-30 to 1. Received: top_p=1.5"),
        ({"top_p": "0.9"}, "top_p must be a number"),
        ({"top_k": 0}, "top_k must be a whole number from 1"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"seed": 2**63}, "seed must be a whole number"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram must be a whole number from 0"),
        ({"no_repeat_ngram": True}, "no_repeat_ngram must be a whole number from 0"),
        ({"order": "right"}, "order must be one of left, confident. Received: 'right'"),
        ({"num_results": 1000, "beam_width": 1000}, "^the results take 1,000,000 hypotheses at a time"),
        ({"num_results": 500, "order": "confident"}, "^the results take 500,000 hypotheses at a time"),
        (
            {"texts": "____ " * 60, "num_results": 30, "limits": {"max_words": 250}},
            "^the results take 900 hypotheses at a time",
        ),
        ({"texts": [TEXT], "limits": [{}, {}]}, "limits must have one entry per text, 1"),
    ],
)
def test_an_argument_out_of_range_is_an_error(infiller, arguments, message):
    with pytest.raises(ValueError, match=message):
        infiller.fill(**{"texts": TEXT, **arguments})


def test_numpy_numbers_are_accepted(infiller):
    filled = infiller.fill(
        TEXT, num_results=np.int64(2), temperature=np.float64(0.7), top_k=np.int64(9), seed=np.int64(1)
    )
    assert len(filled.alternatives) == 2
    infiller.fill(TEXT, beam_width=np.int64(2), limits={"max_words": np.int64(2)})


# Hostile text.


@pytest.mark.parametrize(
    "text",
    [
        "____",
        "____ ____ ____",
        "[blank][blank]____",
        "👍👨‍👩‍👧 ____ ❤️",
        "שלום ____ مرحبا بالعالم ____ !",
        "so\x00 ____ \x00",
        "<m> ____ <EOB> <PAD> <UNK> <BOS> <EOS> <BOB> ____ <m>",
        "\ufeffThe\u200b ____ \u202esoup\u202c",
        "e\u0301te\u0301 ____ ﬁne",
        "\r\n\t____\r\n",
        "x" * 100_000 + " ____ so",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_hostile_text_is_unchanged_outside_its_blanks(infiller, text):
    filled = infiller.fill(text, limits={"prefix": "so", "exact_words": 1})
    expected, place = "", 0
    for blank in blanks_of(infiller, text):
        between = text[place : blank.start]
        expected += (between or " " * (place > 0)) + "so"
        place = blank.end
    assert filled.text.lower() == (expected + text[place:]).lower()


def test_typed_special_tokens_are_plain_text(infiller):
    filled = infiller.fill("<m> ____ <EOB>")
    assert len(filled.fills) == 1
    assert filled.text.startswith("<m>") and filled.text.endswith("<EOB>")
    filled = infiller.fill("____", limits={"prefix": "<m>", "must_include": "<EOB>"})
    assert filled.words[0][:3] == list("<m>") and ["<", "EOB", ">"] in [filled.words[0][i : i + 3] for i in range(9)]


@pytest.mark.parametrize("text", ["so \ud83d ____", "____ \udc00", "\ud800"])
def test_a_lone_surrogate_is_an_error(infiller, text):
    with pytest.raises(ValueError, match="text 2: expected Unicode text. Received: a lone surrogate"):
        infiller.fill(["so", text])


@pytest.mark.parametrize(
    "text", ["so ____ " * 12_500, "____ " * 20_000, "so " * 33_000 + "____", "!" * 100_000 + " ____"]
)
def test_a_text_that_is_too_long_is_an_error(infiller, text):
    with pytest.raises(ValueError, match=r"^the model reads at most 254 words and blanks \(position.base .* 256\)"):
        infiller.fill(text)


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_texts_are_filled_up_to_the_maximum_position(tmp_path, protocol):
    infiller = Infiller.load(write_run(tmp_path, protocol=protocol, settings_=["position.base=32"]))
    for blanks in (1, 2, 5):
        text = "so " * (30 - blanks) + "____ " * blanks
        filled = infiller.fill(text, limits={"min_words": 1})
        words, longest = 30 - blanks, max(map(len, filled.words))
        infiller.model.template_format.check_base(words, blanks, longest)
        if protocol == "released":  # infills share one segment with the kept words, so they are shorter
            assert words + sum(map(len, filled.words)) <= 30
            with pytest.raises(ValueError, match="the model has room for 1 words here. Received: 2 words"):
                infiller.fill(text, limits={"exact_words": 2})
        with pytest.raises(ValueError, match="reads at most 30 words and blanks"):
            infiller.fill("so " + text)
