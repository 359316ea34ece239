"""The command `explain`: templates, positions, and what each blank attends to."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from infilling_runs import TEXT, write_run

from text_infilling.app import cli, explain_run
from text_infilling.app.explain import as_text, turns
from text_infilling.runs.run_folder import open_run
from text_infilling.templates import TemplateFormat

RELEASED = TemplateFormat("renumbered", "zero", False, "released")


def columns(tokens):
    return tuple(zip(*tokens, strict=True))


def test_the_example_of_the_readme():
    first, second = turns("____ have a ____ , please .", ["can i", "beef burger"])[0]
    words, segments, offsets, positions = columns(first.template)
    assert words == tuple("<BOS> <m> have a <m> , please . <EOS>".split())
    assert segments == (0, 1, 2, 2, 3, 4, 4, 4, 4) and offsets == (0, 0, 1, 2, 0, 1, 2, 3, 4)
    assert positions == tuple(256 * segment + offset for segment, offset in zip(segments, offsets, strict=True))
    assert columns(first.answer)[:3] == (("<BOB>", "can", "i"), (1, 1, 1), (0, 1, 2))
    words, segments, _, _ = columns(second.template)
    assert words == tuple("<BOS> can i have a <m> , please . <EOS>".split())
    assert segments == (0, 1, 1, 2, 2, 3, 4, 4, 4, 4)


texts = st.lists(st.sampled_from(["a", "b", "____"]), min_size=1, max_size=6).filter(lambda words: "____" in words)


@given(texts, st.lists(st.sampled_from(["", "x", "x y"]), max_size=1))
def test_a_word_keeps_its_position_while_blanks_are_filled(words, infills):
    found, filled = turns(" ".join(words), infills)
    assert len(found) == words.count("____")
    for turn in found:
        kept = [token for token in turn.template if token.token != "<m>"]
        assert [token for token in filled if token in kept] == kept
        assert turn.answer[1:] == [token for token in filled if token.segment_id == turn.answer[0].segment_id]


def test_the_authors_code_renumbers_the_segments():
    first, second = turns("a ____ b ____ c", ["x", "y"], RELEASED)[0]
    assert columns(first.template)[1:3] == ((0, 0, 1, 2, 3, 4, 4), (0, 1, 0, 0, 0, 0, 1))
    assert columns(second.template)[1] == (0, 0, 0, 0, 1, 2, 2)
    assert {token.segment_id for token in (*first.answer, *second.answer)} == {1}


@pytest.mark.parametrize(
    ("text", "infills", "message"),
    [("no blank", [], "has no blank ____"), ("a ____", ["x", "y"], "has 1 blanks. Received: 2")],
)
def test_a_text_that_cannot_be_explained_is_an_error(text, infills, message):
    with pytest.raises(ValueError, match=message):
        as_text(text, infills)


def test_the_command_prints_each_blank_in_turn(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", "i live ____ and i was ____ chinese food .", "--infill", "in town"])
    printed = capsys.readouterr().out
    assert not ended.value.code
    first, second = printed.index("Blank 1 of 2, segment 1. It attends to all 12"), printed.index("Blank 2 of 2")
    assert first < printed.index("<BOB>   in  town") < second < printed.index("After the last blank:")
    assert "token       <BOS>  i  live  <m>  and    i  was  <m>  chinese  food     .  <EOS>" in printed


def test_a_run_shows_the_probabilities_of_its_own_infills(infiller, infiller_run):
    found, filled = explain_run.explained(open_run(infiller_run), TEXT)
    expected = infiller.fill(TEXT, limits={"min_words": 0}, no_repeat_ngram=0)
    assert [[token.token for token in turn.answer[1:]] for turn, _ in found] == expected.words
    for (turn, steps), log_probs in zip(found, expected.token_log_probabilities, strict=True):
        assert [step.next_words[0][1] for step in steps] == pytest.approx([math.exp(x) for x in log_probs], rel=1e-4)
        assert all(len(step.attention) == len(turn.template) for step in steps)
        assert [sum(step.attention) for step in steps] == pytest.approx([1.0] * len(steps), abs=1e-5)
    assert filled[1].token == "the"


def test_an_infill_that_is_given_is_explained_and_seq2seq_has_no_attention(tmp_path):
    found, filled = explain_run.explained(open_run(write_run(tmp_path, "seq2seq")), TEXT, ["was Good"])
    assert [step.token for step in found[0].steps] == ["<BOB>", "was", "good"]
    assert [token.token for token in filled[1:5]] == ["the", "soup", "was", "good"]
    assert {len(step.next_words) for _, steps in found for step in steps} == {5}
    assert not any(step.attention for _, steps in found for step in steps)


def test_the_page_of_a_run_is_one_file_that_escapes_texts(infiller_run, tmp_path, capsys):
    path = tmp_path / "explained.html"
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", "____ <b> the", "--infill", "a", f"--run={infiller_run}", f"--html={path}"])
    page = path.read_text("utf-8")
    assert not ended.value.code and f"written to {path}" in capsys.readouterr().out
    assert "<b>" not in page and "&lt;BOB&gt;" in page and not any(x in page for x in ("http", "src=", "<script"))
    assert page.count('style="--weight') == 2 * 7  # <BOB> and a; <BOS> <m> <UNK>*3 the <EOS>


@pytest.mark.parametrize(
    ("flags", "message"),
    [(["--html=x"], "--html needs --run"), (["--run=x", "--protocol=paper"], "cannot be combined")],
)
def test_flags_that_do_not_belong_together_are_errors(flags, message, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", "a ____", *flags])
    assert ended.value.code and message in capsys.readouterr().err
