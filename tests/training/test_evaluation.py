"""Evaluation of a split: the batches and the smoothing of `ppl_paper`."""

import pytest
import tensorflow as tf

from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora.corpus import Corpus
from text_infilling.corpora.synthetic import reviews
from text_infilling.metrics.perplexity import Perplexity
from text_infilling.training.evaluation import Evaluator
from text_infilling.training.task import Task, new_model
from text_infilling.vocabulary import Vocabulary

SIZES = ["decoder.dim=16", "decoder.num_blocks=1", "decoder.num_heads=2", "decoder.ffn_dim=32"]


@pytest.fixture(scope="module", params=["paper", "released"])
def evaluated(request, tmp_path_factory):
    """Protocol, lines, task, and evaluator of an untrained model."""
    protocol, tmp_path = request.param, tmp_path_factory.mktemp("corpus")
    lines = list(reviews.sentences(seed=5, count=23))
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    corpus = Corpus("synthetic", path, path, path, source="test", note="", checksum="")
    task = Task(corpus, Vocabulary.build(lines, 1), "fixed", 0.4, 2, seed=1, perplexity_batch=5)
    changes = ["loss.label_smoothing=0.3", "loss.count_padding=false"]  # settings of training
    hparams = run_hparams(protocol, "smoke", [*SIZES, *changes])
    return protocol, lines, task, Evaluator(new_model(task, "self_attention", hparams), task, hparams)


def test_an_infill_is_cut_at_padding_or_the_end_when_scored(evaluated, monkeypatch):
    """docs/fidelity.md, row 31; the answers stay whole."""
    protocol, _, _, evaluator = evaluated
    fill = evaluator.fill

    def with_special(*batch):
        _, lengths, *rest = fill(*batch)
        words = tf.constant([[b"a", b"<EOS>", b"b", b"c"], [b"<UNK>", b"d", b"<PAD>", b"e"]])
        return tf.repeat(words[None], tf.shape(lengths)[0], axis=0), tf.fill(tf.shape(lengths), 4), *rest

    monkeypatch.setattr(evaluator, "fill", with_special)
    whole = [["a", "<EOS>", "b", "c"], ["<UNK>", "d", "<PAD>", "e"]]
    for found in evaluator.fills("test"):
        assert found.infills == ([["a"], ["<UNK>", "d"]] if protocol == "released" else whole)
        assert all(found.answers)


def test_ppl_paper_uses_the_authors_test_batches_and_smoothing(evaluated):
    """`perplexity_batch` sentences per batch in file order, smoothing 0.1, padding counted; no training setting."""
    _, lines, task, evaluator = evaluated
    model = evaluator.model

    assert [len(numbers) for numbers, _ in task.batches("test", 5)] == [5, 5, 5, 5, 3]
    of_batches = []
    pipeline = task.pipeline("test", model.template_format, 5)
    for first in range(0, 23, 5):
        texts = tf.constant(lines[first : first + 5])
        examples = pipeline.examples(tf.range(first, first + len(texts), dtype=tf.int64), texts)._asdict()
        perplexity = Perplexity()
        perplexity.update(*model.score(examples, with_padding=True, smoothing=0.1), examples["answer_lengths"])
        of_batches.append(perplexity.result()["ppl_paper"])
    found = evaluator.perplexities("test")
    assert found["ppl_paper"] == pytest.approx(sum(of_batches) / 5, rel=1e-5)
