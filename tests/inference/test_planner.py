"""Plans: batches that need little padding and fit in memory."""

import threading
import time

import pytest
from infilling_runs import TEXT

from text_infilling.inference.planner import MAX_NUMBERS, Planner, TextSize, plan
from text_infilling.inference.request import SearchOptions
from text_infilling.inference.results import without_blanks

NO_OPTIONS = dict.fromkeys(("beam_width", "temperature", "top_k", "top_p", "seed", "no_repeat_ngram"))


def options_of(**given):
    return SearchOptions.read(1, **{**NO_OPTIONS, "num_results": 1, "order": "left", **given})


def test_a_padded_batch_does_not_exceed_the_maximum_of_hypotheses():
    """Every text of a batch is padded to the largest number of hypotheses."""
    hypotheses = [1] * 127 + [101] + [2] * 100
    batches, at_once = plan({i: TextSize(1, 1, n, 1000) for i, n in enumerate(hypotheses)})
    assert at_once == 2
    assert sorted(i for batch in batches for i in batch) == list(range(len(hypotheses)))
    sizes = [[hypotheses[i] for i in batch] for batch in batches]
    assert all(len(batch) == 1 or len(batch) * max(batch) <= 128 for batch in sizes)
    assert len(batches) <= 4


def test_a_padded_batch_does_not_exceed_the_memory():
    numbers = [MAX_NUMBERS // 8] * 3 + [MAX_NUMBERS // 64] * 20
    batches, at_once = plan({i: TextSize(1, i, 1, n) for i, n in enumerate(numbers)})
    assert sorted(i for batch in batches for i in batch) == list(range(len(numbers)))
    assert all(len(batch) * max(numbers[i] for i in batch) * at_once <= MAX_NUMBERS for batch in batches)
    assert len(batches) <= 4


def test_the_size_of_a_text_follows_from_its_blanks_its_limits_and_the_options(infiller):
    """A text of 9 pieces, 2 of them blanks, with up to 8 and 3 words per infill, and phrases of 2 + 1 words."""
    limits = [{"must_include": ["very good", "soup"]}, {"max_words": 3}]
    (text,) = infiller._reader.read([TEXT], [limits])
    sizer = Planner(vocabulary_size=50, cached=10)
    numbers = 2 * 50 + (len(text.pieces) + 8 + 3) * 10
    for given, attempt, hypotheses, beam in (
        ({}, 0, 4, 1),
        ({"num_results": 3}, 0, 3 * 3 * 4, 3),
        ({"num_results": 3}, 1, 6 * 6 * 4, 6),
        ({"num_results": 3, "seed": 1}, 1, 3 * 4, 1),
        ({"order": "confident"}, 0, 2 * 4, 1),
    ):
        size = sizer.size(text, options_of(**given), attempt)
        assert size == (2, len(text.ids), hypotheses, numbers + 16 * beam)


@pytest.mark.parametrize(("share", "at_once"), [(0.001, 2), (0.6, 1)])
def test_two_batches_run_at_once_if_both_fit_in_memory(infiller, monkeypatch, share, at_once):
    running, most, together = [], [], threading.Barrier(at_once)

    def fill(texts, **_):
        running.append(texts)
        together.wait(timeout=60)
        time.sleep(0.05)  # time in which another batch could start
        most.append(len(running))
        running.pop()
        return [[without_blanks(text.text)] for text in texts]

    monkeypatch.setattr(infiller._filler, "_fill", fill)
    monkeypatch.setattr(Planner, "size", lambda *_: TextSize(1, 1, 1, int(share * MAX_NUMBERS)))
    texts = [f"the {'soup ' * i}____" for i in range(150 if at_once == 2 else 3)]
    assert [filled.text for filled in infiller.fill(texts)] == texts
    assert max(most) == at_once
