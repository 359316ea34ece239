"""Helpers of the builder tests: files to build from, checks for all splits, and comparison with the paper's sizes."""

import json


def write(folder, texts):
    """Writes files, given as text or bytes by name, into a folder; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return folder


def check(splits, shortest, longest):
    """Asserts the properties that all built splits have: distinct sentences, length limits and consistent counts."""
    sentences = [" ".join(sentence) for sentence in splits.train + splits.test]
    assert len(set(sentences)) == len(sentences)
    assert all(shortest <= len(sentence) <= longest for sentence in splits.train + splits.test)
    assert all(" ".join(sentence).split() == sentence for sentence in splits.train + splits.test)
    assert splits.report.vocabulary == len({token for sentence in sentences for token in sentence.split()})
    for split in ("train", "test"):
        counts, sentences = getattr(splits.report, split), getattr(splits, split)
        assert (counts.lines_out, counts.tokens_out) == (len(sentences), sum(map(len, sentences)))
        assert counts.tokens_in == counts.tokens_out + sum(counts.left_out.values())
        assert counts.left_out.keys() == counts.times.keys()


def near(count, papers):
    """Returns whether a count is within 10% of the paper's."""
    return abs(count - papers) <= papers / 10


def released(shared, names):
    """Returns the sentences of the authors' released pairs."""
    lines = [line for name in names for line in (shared / "data" / name).read_text("utf-8").splitlines()]
    return [json.loads(line)["expected"].split() for line in lines]
