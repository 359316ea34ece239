"""What a task derives from its corpus."""

import pytest

from text_infilling.data.corpora import Corpus
from text_infilling.training.task import Task
from text_infilling.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("masking", "mask_rate", "blanks", "longest"),
    # Of ten words five are masked; at random, one blank may get all but one of them.
    [("fixed", 0.5, 1, 5), ("random", 0.5, 1, 5), ("random", 0.5, 2, 4), ("any", 0.5, 2, 5)],
)
def test_an_infill_may_be_twice_as_long_as_the_longest_answer_of_train(tmp_path, masking, mask_rate, blanks, longest):
    for split, words in (("train", 10), ("valid", 15), ("test", 15)):
        (tmp_path / f"{split}.txt").write_text(" ".join(["word"] * words) + "\n", "utf-8")
    corpus = Corpus("yelp", *(tmp_path / f"{split}.txt" for split in ("train", "valid", "test")), "made", "", "")
    task = Task(corpus, Vocabulary(["word"]), masking, mask_rate, blanks, seed=1)
    assert task.max_length({"decoding": {"max_length": 0}}) == 2 * longest
    assert task.max_length({"decoding": {"max_length": 7}}) == 7
