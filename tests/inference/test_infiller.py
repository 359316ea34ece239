"""Infiller: raw text in, readable text out, and results that do not depend on the other texts of a call."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from infilling_runs import LONGEST, SIZES, TEXT, WORDS, blanks_of, write_run
from token_texts import TEXTS

from experiments.cells.cell import Inputs, run_cell
from experiments.cells.setting import Cell, Setting
from text_infilling import templates
from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora.corpus import Corpus
from text_infilling.corpora.synthetic import reviews
from text_infilling.decoding.decode_blanks import fill_blanks
from text_infilling.decoding.greedy import greedy_search
from text_infilling.inference.infiller import Infiller
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import SPECIAL_TOKENS, Vocabulary

AS_EVALUATED = {"limits": {"min_words": 0}, "no_repeat_ngram": 0}


@pytest.fixture
def writable_run(infiller_run, tmp_path):
    return Path(shutil.copytree(infiller_run, tmp_path / "run"))


def sentence_of(infiller, text):
    """Returns the arguments of `fill_blanks` for one text; its blanks contain no words."""
    pieces = infiller.tokenizer.split(text, frozenset(infiller.vocabulary.words))
    words = [piece.word for piece in pieces if piece.word is not None]
    places = [i - k for k, i in enumerate(i for i, piece in enumerate(pieces) if piece.word is None)]
    places = np.array([places], np.int32)
    ids = np.array([infiller.vocabulary.encode(words)], np.int32).reshape(1, -1)
    return ids, np.array([len(words)]), places, places, np.array([places.shape[1]])


def assert_same(one, other):
    """Asserts equal results and alternatives; log probabilities may differ by rounding."""
    assert (one.text, one.fills, one.words) == (other.text, other.fills, other.words)
    for tokens, others in zip(one.token_log_probabilities, other.token_log_probabilities, strict=True):
        assert tokens == pytest.approx(others, abs=1e-4)
    for pair in zip(one.alternatives, other.alternatives, strict=True):
        assert_same(*pair)


# Results.


@pytest.mark.parametrize("name", ["self_attention", "seq2seq"])
@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_greedy_infills_equal_those_of_fill_blanks(tmp_path, name, protocol):
    """Holds for a model that attends to padding too: a text is filled as if it were alone, without padding."""
    infiller = Infiller.load(write_run(tmp_path, name, protocol))
    texts = [TEXT, "____", "I ____ ____ soup ____", "Zorblatt is __m__ good, [blank]!"]
    filled = infiller.fill(texts, beam_width=1, **AS_EVALUATED)
    model, ended = infiller.model, []
    # The infiller has not changed it.
    assert model.template_format == templates.TemplateFormat.from_hparams(model.hparams)
    encoder_length = infiller.decoder.template_format.encoder_length
    model.template_format = model.template_format._replace(encoder_length=encoder_length)
    for text, result in zip(texts, filled):
        expected = fill_blanks(model, *sentence_of(infiller, text), LONGEST)
        lengths = expected.lengths[0].numpy()
        words = [infiller.vocabulary.decode(ids[:n]) for ids, n in zip(expected.ids[0].numpy(), lengths)]
        assert result.words == words
        ended += list(lengths < LONGEST)  # a longer infill was cut, and only the infiller scores its end
        for k, n in enumerate(lengths):
            if n < LONGEST:
                assert result.log_probabilities[k] == pytest.approx(float(expected.scores[0, k]), abs=1e-4)
    assert sum(ended) >= 1


def test_infills_are_detokenized(infiller):
    filled = infiller.fill(TEXT, limits=[{"prefix": "was so good"}, {"prefix": "do n't", "exact_words": 2}])
    assert filled.text == f"The soup {filled.fills[0]}, but I don't the bread!"
    assert filled.fills[0].startswith("was so good")
    assert filled.words[1] == ["do", "n't"]


def test_a_text_returns_one_result_and_a_list_returns_a_list(infiller):
    one = infiller.fill(TEXT)
    assert_same(infiller.fill([TEXT])[0], one)
    assert infiller.fill([]) == []
    assert len(infiller.fill((TEXT, TEXT))) == 2


@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"num_results": 3},
        {"order": "confident", "beam_width": 2},
        {"seed": 3, "top_p": 0.9, "num_results": 3},
        {"limits": {"must_include": "very good", "max_words": 4}},
    ],
    ids=str,
)
def test_the_result_of_a_text_does_not_depend_on_the_other_texts(infiller, settings_):
    texts = [TEXT, "____", "No blank.", "", "____ ____ ____ ____", "the soup the soup the soup the soup ____ !", TEXT]
    together = infiller.fill(texts, **settings_)
    for text, filled in zip(texts, together):
        assert_same(filled, infiller.fill(text, **settings_))


@pytest.mark.parametrize("settings_", [{}, {"seed": 3}], ids=str)
def test_calls_with_many_texts_give_the_results_of_single_texts(infiller, settings_):
    texts = [f"{'the ' * (i % 7)}{'____ ' * (i % 4)}." for i in range(300)]
    alone = {text: infiller.fill(text, **settings_) for text in set(texts)}
    for text, filled in zip(texts, infiller.fill(texts, **settings_), strict=True):
        assert len(filled.fills) == text.count("____")
        assert_same(filled, alone[text])


def test_a_text_may_have_any_number_of_blanks(infiller):
    for count in (1, 2, 3, 5, 17, 40, 64):
        filled = infiller.fill("the soup " + "____ and " * count + "so .")
        assert len(filled.fills) == len(filled.words) == len(filled.log_probabilities) == count
    filled = infiller.fill("____ [blank][blank] __m__", order="confident", limits={"exact_words": 1})
    assert filled.text == " ".join(filled.fills)


@pytest.mark.parametrize("text", ["", " ", "The soup.", "Toronto_Raptors _num_ \n__init__  "])
def test_a_text_without_blanks_is_returned_unchanged(infiller, text):
    filled = infiller.fill(text, num_results=3)
    assert (filled.text, filled.fills, filled.log_probability) == (text, [], 0.0)
    assert [other.text for other in filled.alternatives] == [text]


@settings(max_examples=25)
@given(TEXTS, st.sampled_from([{}, {"seed": 1, "temperature": 3.0}, {"order": "confident"}]))
def test_only_spaces_change_outside_the_blanks(infiller, text, settings_):
    filled = infiller.fill(text, **settings_)
    expected, place = "", 0
    for blank, fill in zip(blanks_of(infiller, text), filled.fills, strict=True):
        expected += text[place : blank.start] + fill
        place = blank.end
    assert filled.text.replace(" ", "") == (expected + text[place:]).replace(" ", "")


@settings(max_examples=10)
@given(st.integers(0, 2**60))
def test_infills_contain_no_special_tokens(infiller, seed):
    filled = infiller.fill(["____ ____ <m> <EOB> ____"] * 3, temperature=20.0, seed=seed, num_results=20)
    words = {word for result in filled for other in result.alternatives for fill in other.words for word in fill}
    assert words <= set(WORDS)
    assert len(words) > len(WORDS) / 2
    assert not words & set(SPECIAL_TOKENS)


# Log probabilities.


@pytest.mark.parametrize(
    "settings_", [{}, {"num_results": 4}, {"seed": 2, "num_results": 4}, {"order": "confident"}], ids=str
)
def test_log_probabilities_are_sums_of_those_of_the_words_and_the_end(infiller, settings_):
    for filled in infiller.fill([TEXT, "____", "____ ____ ____"], **settings_):
        for other in filled.alternatives:
            assert other.log_probability == pytest.approx(sum(other.log_probabilities))
            for words, tokens, total in zip(other.words, other.token_log_probabilities, other.log_probabilities):
                assert len(tokens) == len(words) + 1
                assert all(token <= 0 for token in tokens)
                assert total == pytest.approx(sum(tokens))


def test_an_infill_has_the_same_log_probability_when_requested_as_a_prefix(infiller):
    for filled in infiller.fill(TEXT, seed=5, num_results=3).alternatives:
        limits = [{"prefix": " ".join(words), "exact_words": len(words)} for words in filled.words]
        again = infiller.fill(TEXT, limits=limits)
        assert again.words == filled.words
        for one, other in zip(again.token_log_probabilities, filled.token_log_probabilities):
            assert one == pytest.approx(other, abs=1e-4)


# Several results.


@pytest.mark.parametrize("settings_", [{}, {"seed": 1}, {"order": "confident"}], ids=str)
def test_results_are_distinct_and_sorted_best_first(infiller, settings_):
    filled = infiller.fill(TEXT, num_results=6, **settings_)
    texts = [other.text for other in filled.alternatives]
    assert len(set(texts)) == len(texts) == 6
    scores = [other.log_probability for other in filled.alternatives]
    assert scores == sorted(scores, reverse=True)
    first = filled.alternatives[0]
    assert (first.text, first.fills, first.log_probability) == (filled.text, filled.fills, filled.log_probability)
    assert all(other.alternatives == [] for other in filled.alternatives)


def test_a_beam_as_wide_as_everything_ranks_whole_texts(tmp_path):
    """With four words and one word per blank, the beam ranks all 16 results of two blanks by probability."""
    infiller = Infiller.load(write_run(tmp_path, words=["a", "b", "c", "d"]))
    one = {"exact_words": 1}
    found = infiller.fill("____ a ____", num_results=16, limits=one).alternatives
    every = [
        infiller.fill("____ a ____", limits=[{**one, "prefix": first}, {**one, "prefix": second}])
        for first in "abcd"
        for second in "abcd"
    ]
    every.sort(key=lambda filled: -filled.log_probability)
    assert [filled.text for filled in found] == [filled.text for filled in every]
    # No more exist: fewer than requested are returned, without duplicates.
    assert len(infiller.fill("____ a ____", num_results=40, limits=one).alternatives) == 16
    assert len(infiller.fill("____ a ____", num_results=40, limits=one, seed=0, temperature=50.0).alternatives) == 16


def test_infills_that_give_the_same_text_are_one_result(infiller):
    """With two adjacent blanks, a word in the first reads the same as that word in the second."""
    filled = infiller.fill("____ ____", num_results=10, limits={"max_words": 2})
    assert len({other.text for other in filled.alternatives}) == 10


def test_a_wider_beam_finds_no_worse_results(infiller):
    texts = [TEXT, "____", "We ____ so ____ the ____."]
    greedy, beam = (sum(f.log_probability for f in infiller.fill(texts, beam_width=width)) for width in (1, 8))
    assert beam >= greedy


# Samples.


def test_the_same_seed_gives_the_same_samples_and_another_seed_others(infiller):
    def texts(**settings_):
        return [other.text for other in infiller.fill(TEXT, num_results=5, temperature=2.0, **settings_).alternatives]

    assert texts() == texts(seed=0) == texts(seed=0)
    assert texts(seed=-(2**63)) != texts(seed=1) != texts(seed=0)


def test_samples_of_low_temperature_top_k_or_top_p_equal_greedy_search(infiller):
    greedy = infiller.fill(TEXT, beam_width=1)
    for settings_ in ({"temperature": 1e-9}, {"top_k": 1}, {"top_p": 1e-9}):
        assert infiller.fill(TEXT, **settings_).words == greedy.words


# Confident order.


def test_confident_order_fills_the_most_confident_blank_first(infiller):
    """Compares with a plain loop that tries every open blank and keeps the highest mean log probability."""
    model, orders = infiller.model, set()
    for text in ("____ soup ____ bread ____ !", "I ____ and ____", "____ ____ so", "the ____ , ____ but ____ ."):
        ids, lengths, places, _, counts = sentence_of(infiller, text)
        template = templates.initial_template(ids, lengths, places, places, counts, model.template_format)
        open_, words = list(range(counts[0])), {}
        while open_:
            tries = []
            for blank, place in zip(open_, np.flatnonzero(template.blanks[0])):
                only = tf.one_hot([place], template.ids.shape[1], True, False)
                infills = greedy_search(model.step, model.start(template._replace(blanks=only)), 1, LONGEST + 1)
                length = int(infills.lengths[0])
                tries.append((float(infills.scores[0]) / (length + 1), blank, place, infills.ids[:, :length]))
            _, blank, place, infill = max(tries, key=lambda attempt: attempt[0])
            format_, places = model.template_format, tf.constant([place])
            template = templates.fill_blank(template, infill, [infill.shape[1]], format_, places)
            words[blank] = infiller.vocabulary.decode(infill[0].numpy())
            open_.remove(blank)
        orders.add(tuple(words))
        if all(len(fill) < LONGEST for fill in words.values()):
            filled = infiller.fill(text, order="confident", **AS_EVALUATED)
            assert filled.words == [words[blank] for blank in sorted(words)]
    assert any(list(order) != sorted(order) for order in orders)


# Runs.


def test_a_trained_run_fills_as_its_evaluation_did(tmp_path):
    """Trains a model and fills its test sentences, typed with underscores, with the infills of the evaluation."""
    sentences, paths = list(reviews.sentences(seed=3, count=140)), []
    for name, part in (("train", sentences[:100]), ("valid", sentences[100:120]), ("test", sentences[120:])):
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text("".join(f"{sentence}\n" for sentence in part), encoding="utf-8")
    assignments = [*SIZES["self_attention"], "decoding.max_length=20", "train.epochs=4", "train.batch_size=10"]
    assignments += ["schedule.warmup_steps=5", "schedule.peak=0.01"]  # makes infills end
    cell = Cell(Setting("synthetic", "fixed", 0.4, 2, "paper", "smoke"), "self_attention", 1)
    inputs = Inputs(
        corpus=Corpus("synthetic", *paths, source="made up", note="", checksum="c0ffee"),
        vocabulary=Vocabulary.build(sentences[:100], min_count=1),
        hparams=run_hparams("paper", "smoke", assignments),
        workdir=tmp_path / "runs",
    )
    run_cell(cell, inputs)
    folder = cell.folder(inputs.workdir)
    lines = (folder / "predictions.jsonl").read_text("utf-8").splitlines()
    predictions = [json.loads(line) for line in lines]
    texts = [prediction["template"].replace("<m>", "____") for prediction in predictions]
    filled = Infiller.load(folder).fill(texts, **AS_EVALUATED)
    for prediction, result in zip(predictions, filled, strict=True):
        assert [" ".join(words) for words in result.words] == prediction["infill"]
        assert result.log_probabilities == pytest.approx(prediction["scores"], abs=1e-3)


def test_the_settings_of_the_run_are_the_defaults(writable_run):
    write_run(writable_run, settings_=["decoding.beam_width=3", "decoding.max_length=2"])
    infiller = Infiller.load(str(writable_run))
    filled = infiller.fill("____ so ____", limits=[{"banned_words": "so"}, None])
    assert max(map(len, filled.words)) <= 2
    wide = infiller.fill("____ so ____", limits=[{"banned_words": "so"}, None], beam_width=3)
    assert_same(filled, wide)


def test_the_tokenizer_of_the_run_is_used_if_recorded(writable_run):
    assert Infiller.load(writable_run).tokenizer == Tokenizer(lower=True)
    Tokenizer(lower=False).save(writable_run / "tokenizer.json")
    assert Infiller.load(writable_run).tokenizer == Tokenizer(lower=False)


def test_case_is_kept_if_the_corpus_kept_it(tmp_path):
    words = ["Raptors", "the", "The", "Toronto_Raptors", "won", "n't", "."]
    infiller = Infiller.load(write_run(tmp_path, words=words))
    assert not infiller.tokenizer.lower
    filled = infiller.fill("The ____ won.", limits={"prefix": "Raptors", "banned_words": "THE"})
    assert filled.text.startswith("The Raptors")
    assert not {"the", "The"} & set(filled.words[0])
    results = infiller.fill("____ Raptors won.", num_results=7, limits={"exact_words": 1}).alternatives
    assert len({result.text for result in results}) == len(results) == 6  # `the` and `The` look the same at the start


def test_a_gan_can_be_loaded(tmp_path):
    filled = Infiller.load(write_run(tmp_path, "gan")).fill(TEXT, limits={"exact_words": 1})
    assert [len(words) for words in filled.words] == [1, 1]


def change_config(folder, change):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    change(config)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "best.weights.h5").unlink(), "has no best.weights.h5: give the folder of a trained"),
        (
            lambda folder: (folder / "best.weights.h5").rename(folder / "resume.npz"),
            "has no best.weights.h5 yet: training was stopped before the end of its first epoch",
        ),
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "config.json does not describe a run"),
        (lambda folder: change_config(folder, lambda c: c["hparams"].pop("decoder")), "config.json does not describe"),
        (lambda folder: change_config(folder, lambda c: c["cell"].update(model="x")), "cell.model must be one of"),
        (lambda folder: Vocabulary(["other"]).save(folder / "vocabulary.txt"), "is not the one that .* was made with"),
        (
            lambda folder: change_config(folder, lambda c: c["hparams"]["decoder"].update(dim=32)),
            "best.weights.h5 does not hold the weights of the self_attention model",
        ),
        (lambda folder: (folder / "best.weights.h5").write_bytes(b"weights"), "best.weights.h5 does not hold"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer.json should hold the settings"),
    ],
)  # fmt: skip
def test_a_damaged_run_folder_is_a_one_line_error(writable_run, damage, message):
    damage(writable_run)
    with pytest.raises(ValueError, match=message) as error:
        Infiller.load(writable_run)
    assert "\n" not in str(error.value)


def test_a_missing_run_folder_is_an_error():
    with pytest.raises(ValueError, match="nowhere has no config.json, vocabulary.txt, best.weights.h5"):
        Infiller.load("nowhere")
