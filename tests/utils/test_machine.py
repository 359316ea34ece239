"""The names of the processor and its instruction sets."""

from pathlib import Path

import pytest

from text_infilling.utils import machine

INFO = "processor\t: 0\nmodel name\t: A Processor\nflags\t\t: fpu avx avx2 avx512f avx512_bf16 sse2\n"


@pytest.mark.parametrize(("text", "name", "sets"), [
    (INFO, "A Processor", ["avx", "avx2", "avx512f", "avx512_bf16"]),
    ("processor\t: 0\n", None, []),  # as on ARM
])  # fmt: skip
def test_processor_and_instruction_sets(monkeypatch, text, name, sets):
    monkeypatch.setattr(Path, "read_text", lambda path, encoding: text)
    assert machine.instruction_sets() == sets
    assert machine.processor() == name if name else machine.processor()


def test_a_system_without_cpuinfo_has_a_processor_and_no_known_instruction_sets(monkeypatch):
    def missing(path, encoding):
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    assert machine.processor() and machine.instruction_sets() == []
