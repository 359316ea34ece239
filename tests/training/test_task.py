"""Values that a task derives from its corpus."""

import pytest

from text_infilling.corpora.corpus import Corpus
from text_infilling.training.task import Task
from text_infilling.vocabulary import SPECIAL_TOKENS, Vocabulary


def test_rarer_words_are_more_often_learned_as_unknown(tmp_path):
    (tmp_path / "train.txt").write_text("so so so\nvery so\n", "utf-8")
    corpus = Corpus("own", *[tmp_path / "train.txt"] * 3, "made", "", "")
    task = Task(corpus, Vocabulary(["so", "very", "elsewhere"]), "any", 0.5, 1, seed=1)
    assert task.unknown_chances(0.0) is None
    assert task.unknown_chances(0.5).tolist() == pytest.approx([0.0] * len(SPECIAL_TOKENS) + [0.5 / 4.5, 0.5 / 1.5, 1])


@pytest.mark.parametrize(
    ("masking", "mask_rate", "blanks", "longest"),
    # Five of ten words are masked; with random masking, one blank may get all except one of them.
    [("fixed", 0.5, 1, 5), ("random", 0.5, 1, 5), ("random", 0.5, 2, 4), ("any", 0.5, 2, 5)],
)
def test_an_infill_may_be_twice_as_long_as_the_longest_answer_of_train(tmp_path, masking, mask_rate, blanks, longest):
    for split, words in (("train", 10), ("valid", 15), ("test", 15)):
        (tmp_path / f"{split}.txt").write_text(" ".join(["word"] * words) + "\n", "utf-8")
    corpus = Corpus("yelp", *(tmp_path / f"{split}.txt" for split in ("train", "valid", "test")), "made", "", "")
    task = Task(corpus, Vocabulary(["word"]), masking, mask_rate, blanks, seed=1)
    assert task.max_length({"decoding": {"max_length": 0}}) == 2 * longest
    assert task.max_length({"decoding": {"max_length": 7}}) == 7
