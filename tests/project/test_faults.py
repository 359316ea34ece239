"""The fault campaign: a short version of its damaged inputs, and what it counts as a failure."""

import importlib
import json
import random
import sys
import time

import pytest
from serving_helper import Echo, serving_

from benchmarks import damage, damaged_inputs, process_faults, serve
from benchmarks.damage import Neighbours, Tally


def test_no_damaged_input_fails(tmp_path):
    rows = list(damaged_inputs.campaign(tmp_path, inputs=150, seed=1))
    assert [reason for row in rows for reason in row["reasons"]] == []
    assert {row["of"] for row in rows} == set(damaged_inputs.SHARES)
    assert all(row["accepted"] + row["refused"] == row["inputs"] > 0 and not row["failed"] for row in rows)


def raising(error):
    def read():
        raise error

    return read


@pytest.mark.parametrize(
    ("read", "outcome"),
    [
        (lambda: 1, "accepted"),
        (raising(ValueError("x.json is not JSON")), "refused"),
        (raising(FileNotFoundError(2, "missing", "x.json")), "refused"),
        (raising(ValueError("something is wrong")), "the error does not name x.json: ValueError: something is wrong"),
        (raising(KeyError("x.json")), "KeyError: 'x.json'"),
        (raising(RecursionError("too deep")), "RecursionError: too deep"),
        (lambda: time.sleep(5), "no answer within 0.05 s"),
        (lambda: importlib.import_module(damage.TRAP), "it imports code that the input names"),
    ],
)
def test_an_outcome_is_a_result_a_named_error_or_a_failure(read, outcome, tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "LONGEST", 0.05)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{damage.TRAP}.py").touch()
    tally = Tally("x.json")
    tally.judge("cut", read, ["x.json"])
    row = tally.row("damaged")
    assert row["inputs"] == 1 and damage.TRAP not in sys.modules
    if outcome in ("accepted", "refused"):
        assert row[outcome] == 1 and not row["reasons"]
    else:
        assert row["failed"] == 1 and row["reasons"] == [f"x.json: cut: {outcome}"]


def test_a_changed_file_beside_an_input_is_a_failure(tmp_path):
    neighbours, tally = Neighbours(tmp_path), Tally("x.json")
    neighbours.check(tally)
    assert not tally.failed
    (tmp_path / "new").touch()
    neighbours.check(tally)
    assert tally.failed == 1


def test_damages_depend_on_the_seed_only_and_differ_from_the_content():
    content = json.dumps({"cell": {"model": "gan"}, "hparams": {"a": [1, 2.5]}}).encode()
    for damaged in (lambda rng: damage.damaged_json(rng, content), lambda rng: damage.damaged_bytes(rng, content, [])):
        first, again = ([damaged(random.Random(seed)) for seed in range(100)] for _ in range(2))
        assert first == again and sum(found != content for _, found in first) > 80
    kinds = {damage.damaged_bytes(random.Random(seed), content, [])[0] for seed in range(100)}
    assert kinds == set(damage.BYTE_KINDS)


@pytest.mark.parametrize("name", ["fit", "self_attention", "gan"])
def test_the_commands_that_are_killed_have_valid_flags(name, tmp_path):
    from experiments import yelp
    from experiments.cells import flags
    from text_infilling.app import cli

    arguments = process_faults.Command(name, tmp_path).arguments(tmp_path / "out")
    if name == "fit":
        assert cli.new_parser().parse_args(arguments).out == str(tmp_path / "out")
    else:
        assert flags.models(flags.parse(arguments[1:], yelp.define_flags)) == [name]


def test_the_load_test_counts_wrong_and_refused_answers():
    texts = {f"{word} ____": [f"{word} {word}", [word]] for word in "abc"}
    with serving_(Echo()) as server, serve.dripping_clients(("127.0.0.1", server.port), 3):
        address = ("127.0.0.1", server.port)
        times, wrong, refused = serve.load(address, texts, None, clients=4, count=12)
        assert (len(times), wrong, refused) == (12, 0, 0) and min(times) > 0
        assert serve.load(address, {**texts, "d ____": ["d e", ["e"]]}, None, 2, 4)[1:] == (1, 0)
        assert serve.load(address, {**texts, "forbidden ____": []}, None, 2, 4)[1:] == (0, 1)
