"""Blanks in typed text: masks of other tools, and marks that only look like a blank."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_texts import LOWER, PARTS

from text_infilling.text.blanks import foreign_masks, with_blanks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My [MASK] likes [MASK], not <mask> or <extra_id_0>.", ["[MASK]", "<mask>", "<extra_id_0>"]),
        (
            "<m> [MASK_1] {blank} {{mask}} [BLANK] <blank>",
            ["<m>", "[MASK_1]", "{blank}", "{{mask}}", "[BLANK]", "<blank>"],
        ),
        ("a _ b, un____able and __init__", ["_", "un____able", "__init__"]),
        ("____ __m__, [blank] they ____n't snake_case [1] {a} <b>", []),
    ],
)
def test_masks_of_other_tools_are_found(text, expected):
    assert foreign_masks(text) == expected


@pytest.mark.parametrize(
    ("text", "token", "expected"),
    [
        ("My [MASK] likes [MASK].", "[MASK]", "My [blank] likes [blank]."),
        ("un[MASK]able [MASK][MASK] ([MASK])", "[MASK]", "un[MASK]able [blank][blank] ([blank])"),
        ("They [MASK]n't, [MASK]'s", "[MASK]", "They [blank]n't, [blank]'s"),
        ("BLANK and BLANKS, BLANKn't", "BLANK", "[blank] and BLANKS, [blank]n't"),
        ("a _ snake_case ____", "_", "a [blank] snake_case ____"),
        ("<extra_id_0> or <extra_id_12>", "<extra_id_0>", "[blank] or [blank]"),
        ("a .* b.* c", ".*", "a [blank] b.* c"),
        ("nothing", "[MASK]", "nothing"),
    ],
)
def test_another_mask_becomes_a_blank_unless_it_touches_a_word(text, token, expected):
    assert with_blanks(text, token) == expected


@given(st.lists(st.sampled_from(["[MASK]", *PARTS[:40], " ", "n't", ","]), max_size=12).map(" ".join))
def test_each_other_mask_becomes_one_blank_and_the_rest_stays(text):
    found = with_blanks(text, "[MASK]")
    assert [piece.word for piece in LOWER.split(found)].count(None) == text.count("[MASK]")
    assert found.replace("[blank]", "[MASK]") == text
