"""Time to quality, from the validations of finished cells."""

import pytest
from finished_cells import finish, other

from experiments import collect, records
from experiments.cells import flags
from text_infilling.utils import files

PLAN = {"epochs": 4, "epochs_per_pass": 2}


def recorded(folder, seed, ppls, gflops=(100.0, 200.0), **changes):
    """Creates a self-attention cell whose validations have these perplexities, one per minute times its seed."""
    cell = finish(folder, other(blanks=1, mask_rate=0.5, seed=seed, **changes), {}, plan=PLAN)
    lines = [{"epoch": i, "steps": 9, "seconds": 60.0 * i * seed, "val_ppl": x} for i, x in enumerate(ppls, start=1)]
    files.write_jsonl(cell / "epochs.jsonl", lines)
    rates = dict(zip(("gemm_gflops_before", "gemm_gflops_after"), gflops))
    files.write_json(cell / "timing.json", {"processor": "AMD EPYC", "commit": "abc", **rates})
    return cell


def row(folder, model="Self-attn", title="Yelp 50%, 1 blank"):
    text = records.page(collect.read_all(folder))
    (found,) = (line for line in text.splitlines() if line.startswith(f"| {title} | {model} |"))
    return found.strip("| ").split(" | ")[2:]


def test_the_mean_of_the_seeds_counts_and_time_and_work_are_means_too(tmp_path):
    recorded(tmp_path, 1, [30.0, 22.0, 21.0, 20.0])
    recorded(tmp_path, 2, [30.0, 21.0, 21.5, 20.0])
    # Epochs of half a pass: 21.5 after the second, at 2 and 4 minutes; 150 GFLOP/s.
    assert row(tmp_path) == ["1, 2", "21.6", "1", "21.50", "3.0", "27", "AMD EPYC", "abc"]
    assert row(tmp_path, "Seq2Seq")[2] == "not run"


def test_a_target_that_is_not_reached_and_missing_records_are_named(tmp_path):
    cell = recorded(tmp_path, 1, [30.0, 22.0])
    assert row(tmp_path)[2:6] == ["not reached", "22.00", "-", "-"]
    files.remove(cell / "epochs.jsonl")
    assert row(tmp_path)[2:6] == ["not recorded", "-", "-", "-"]
    recorded(tmp_path, 2, [20.0], gflops=(), model="seq2seq")
    assert row(tmp_path, "Seq2Seq")[5] == "not recorded"


def test_a_damaged_file_is_named_and_the_command_writes_the_page(tmp_path):
    cell = recorded(tmp_path / "cells", 1, [20.0])
    values = flags.parse([f"--cells={tmp_path}/cells", f"--root={tmp_path}"], records.define_flags)
    records.run(values)
    assert "cube TFLOP" in (tmp_path / "docs" / "records.md").read_text("utf-8")
    files.write_jsonl(cell / "epochs.jsonl", [{"epoch": 1}])
    with pytest.raises(ValueError, match="line 1 of .*epochs.jsonl: it has no seconds"):
        records.run(values)
