"""Diversity of infills, on cases counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_infilling.metrics.diversity import distinct, largest_share

INFILLS = [["a", "b", "a"], ["a", "b"], [], ["c"]]


def test_distinct_divides_distinct_ngrams_by_all_ngrams():
    assert distinct(INFILLS, 1) == pytest.approx(3 / 6)
    assert distinct(INFILLS, 2) == pytest.approx(2 / 3)  # (a b), (b a), (a b); no bigram crosses infills
    assert distinct(INFILLS, 4) == 0.0


def test_the_largest_share_is_that_of_the_most_frequent_infill():
    assert largest_share([["a"], ["a", "b"], ["a"], ["c"]]) == 0.5
    assert largest_share([[], [], ["a"]]) == pytest.approx(2 / 3)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4), min_size=1), st.integers(2, 5))
def test_repeating_infills_divides_distinct_and_keeps_the_largest_share(infills, times):
    for n in (1, 2):
        assert distinct(infills * times, n) == pytest.approx(distinct(infills, n) / times)
    assert largest_share(infills * times) == pytest.approx(largest_share(infills))
    assert 1 / len(infills) <= largest_share(infills) <= 1
