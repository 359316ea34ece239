"""The files that `fit` reads, how it recognises their format, and its errors for files that it cannot read."""

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path

import pytest

from text_infilling.corpora import source_texts
from text_infilling.corpora.source_texts import SourceFile, Table, check_there, source_files

PROSE = "Roses are red, violets are blue\n"
ROWS = "".join(f"{i},Good food {i},5\n" for i in range(30))


def written(tmp_path, content, name="a.txt") -> SourceFile:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return SourceFile(str(path))


def recognised(tmp_path, content, name="a.txt") -> Table | None:
    return written(tmp_path, content, name)._recognised()


# Recognising the format.


@pytest.mark.parametrize(
    "content",
    [
        "",
        PROSE * 50,
        "Roses,red,blue\n" + PROSE * 50,
        "I paid 1,000 .\n" * 50,
        '"Well," he said, "no."\n' * 50,
        '"Yes."\n' * 50,
        "a | b\n" * 50,
        "the food was great , really\n" * 50,
        "{ not json }\n" * 50,
        "[Chapter 1] It rained.\n" * 50,
        "Sehr geehrte Damen; guten Tag\n" * 50,
    ],
)
def test_prose_is_plain_text(tmp_path, content):
    assert recognised(tmp_path, content) is None


def test_the_papers_corpora_are_plain_text_and_their_pairs_are_json_lines(shared):
    texts = [*shared.glob("data/**/*.txt")]
    assert len(texts) > 50
    assert [path for path in texts if SourceFile(str(path))._recognised()] == []
    for path in shared.glob("data/*/*.jsonl"):
        assert SourceFile(str(path))._recognised() == Table("JSON Lines", ["template", "expected"])


@pytest.mark.parametrize(
    ("content", "name", "kind", "columns"),
    [
        ('{"id": 1}\n{"text": "a"}\nbroken\n', "a.txt", "JSON Lines", ["id", "text"]),
        ('{"id": 1}\n', "a.json", "JSON Lines", ["id"]),
        ("no object\n", "a.jsonl", "JSON Lines", []),
        ("id,Review Text,stars\n" + ROWS, "a.txt", "CSV", ["id", "Review Text", "stars"]),
        ("id,text,stars\n" + ROWS, "a", "CSV", ["id", "text", "stars"]),
        ("id;text;stars\n" + ROWS.replace(",", ";"), "a.csv", "CSV", ["id", "text", "stars"]),
        ("id\ttext\n" + '1\t"Great" food\n' * 9, "a.txt", "TSV", ["id", "text"]),
        ('1,"Great, it is.\nYes."\n' * 9, "a.txt", "CSV", ["1", "Great, it is.\nYes."]),
        ("text\n" + PROSE * 9, "a.csv", "CSV", ["text"]),
        ("text\n" + PROSE * 9, "a.CSV.gz", "CSV", ["text"]),
        ("id, text\n", "a.csv", "CSV", ["id", "text"]),
        ("id\ttext\n" + "1\tGood\textra\n" * 9, "a.tsv", "TSV", ["id", "text"]),
        ("id,text\n" + "".join(f'{i},"{"long " * 1000}\n"\n' for i in range(90)), "a", "CSV", ["id", "text"]),
    ],
)
def test_tables_are_recognised_by_content_or_name(tmp_path, content, name, kind, columns):
    table = recognised(tmp_path, content, name)
    assert (table.kind, table.columns) == (kind, columns)


@pytest.mark.parametrize(
    ("content", "command"),
    [('[{"text": "a"},\n {"text": "b"}]', "jq -c"), ('{\n  "text": [1]\n}', "jq -c"), ('["a b", "c d"]', "jq -r"),
     ('[\n  "a b",\n  "c d"\n]', "jq -r")],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_a_json_file_is_refused_with_the_command_that_converts_it(tmp_path, content, command, name):
    with pytest.raises(ValueError, match=f"a.* is JSON: expected plain text, or JSON Lines .*{command}"):
        recognised(tmp_path, content, name)


def test_a_table_requires_a_column_and_plain_text_refuses_one(tmp_path):
    with pytest.raises(ValueError, match="is CSV: choose .* column=NAME. NAME is one of id, text, stars$"):
        next(written(tmp_path, "id,text,stars\n" + ROWS).texts(None))
    with pytest.raises(ValueError, match="column=text is for JSON Lines, CSV and TSV, .* looks like plain text"):
        next(written(tmp_path, PROSE * 30).texts("text"))


# Reading a column.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"id": 1}\n', "line 2: there is no key 'text'; column takes one of id"),
        ('{"text": "a"}\n\n{"text": null}\n', "line 3: text must be a string. Received: null"),
        ('{"text": "a"}\n{"text": "b"\n', 'line 2: expected a JSON object. Received: \'{"text": "b"\''),
        ('{"text": "a"}\n{"text": "b"}\n["text"]\n', "line 3: expected a JSON object"),
        ('{"text": "a"}\n' + "[" * 100_000 + "\n{}\n", "line 2: expected a JSON object"),
        ('{"text": "\\ud800"}\n', "line 1: text is not valid Unicode"),
        ("id,txt\n" + "1,a\n" * 9, "line 1: there is no column 'text'; column takes one of id, txt"),
        ("text,text,text\n" + ROWS, "line 1: there is more than one column 'text'"),
        ("id,text,stars\n" + ROWS + "1,Good, or not,5\n", "line 32: expected 3 columns .* Received: 4. .*','"),
        ("id,text,stars\n" + ROWS + '1,"Good,5\n', "line 32: not CSV: unexpected end of data"),
        ("id,text,stars\n" + ROWS + '1,"Good" food,5\n', "line 32: not CSV: ',' expected after '\"'"),
        ('id,text\n1,"' + "Good\n" * 40_000, "not CSV: field larger than field limit"),
        ('1,"' + "Good\n" * 40_000, "not CSV: field larger than field limit"),
        ("{}\n", "line 1: there is no key 'text'; column takes one of \\(none was found\\)"),
        ("id,text,stars\n" + ROWS + '1,"' + "Good\n" * 40_000, "not CSV: field larger than field limit"),
    ],
)
def test_the_error_of_an_invalid_record_names_file_and_line(tmp_path, content, message):
    suffix = ".csv" if "," in content.partition("\n")[0] and content[0] != "{" else ".jsonl"
    with pytest.raises(ValueError, match=message) as error:
        list(written(tmp_path, content, f"a{suffix}").texts("text"))
    assert str(tmp_path / f"a{suffix}") in str(error.value) and len(str(error.value).splitlines()) == 1


def test_lines_of_a_text_stay_separate_and_an_empty_line_follows_each_text(tmp_path):
    content = '{"text": "one\\ntwo\\r\\nthree"}\n{"text": ""}\n{"text": "four"}\n'
    found = "".join(f"{line.rstrip()}|" for line in written(tmp_path, content).texts("text"))
    assert found == "one|two|three|||four||"


def test_quotes_in_tsv_without_quoting_are_text(tmp_path):
    found = list(written(tmp_path, "id\ttext\n" + '1\t"Great" food\n2\t"So\n3\tno\n').texts("text"))
    assert found == ['"Great" food', "", '"So', "", "no", ""]


def test_a_long_text_in_a_record_is_cut_and_a_record_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(source_texts, "LONGEST_LINE", 20)
    source = written(tmp_path, '{"text": "' + "word " * 10 + '"}\n', "a.jsonl")
    assert [len(line) for line in source.texts("text")] == [20, 20, 10, 0]
    monkeypatch.setattr(source_texts, "LONGEST_RECORD", 50)
    with pytest.raises(ValueError, match="line 1: more than 50 characters"):
        list(source.texts("text"))


# Other formats and encodings.


def zipped(name) -> bytes:
    path = Path(name)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "text")
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped, r"is a ZIP archive \(as .docx, .xlsx, .odt and .epub are\), not text: extract it"),
        (lzma.compress(b"text"), "compressed by xz, not text: decompress it with xz -d"),
        (bz2.compress(b"text", 1), "compressed by bzip2"),
        (b"\x28\xb5\x2f\xfd\0\0", "compressed by zstd"),
        (b"%PDF-1.7\ntext\n", "a PDF document, not text: extract its text with pdftotext"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "a PNG image"),
        (b"{\\rtf1\\ansi text}", "an RTF document"),
        (gzip.compress(gzip.compress(b"text", mtime=0), mtime=0), "a gzip file inside a gzip file"),
        (gzip.compress(b"%PDF-1.7\n", mtime=0), "a PDF document"),
        (b"fine\nno\0text\n", "line 2: has a NUL byte, .* iconv -f UTF-16LE"),
        ("text\n".encode("utf-16-le"), "line 1: has a NUL byte, .* iconv -f UTF-16LE"),
        (gzip.compress(b"a text\n" * 99, mtime=0)[:-9], r"is a damaged gzip file \(.*\): copy or compress it again"),
        (gzip.compress(b"a text\n" * 99, mtime=0)[:20] + b"\0" * 99, "is a damaged gzip file"),
        (b"\x1f\x8b", "is a damaged gzip file"),
        (gzip.compress(b"a text\n", mtime=0) + b"garbage", "is a damaged gzip file"),
    ],
)
def test_the_error_of_a_binary_file_names_its_format_and_a_remedy(tmp_path, content, message):
    content = content(tmp_path / "archive.zip") if callable(content) else content
    with pytest.raises(ValueError, match=message):
        list(written(tmp_path, content).texts(None))


@pytest.mark.parametrize("text", ["caf\xe9", "fine\ncaf\xe9", "it\u2019s", "caf\xe9\nit\u2019s"])
@pytest.mark.parametrize("encoding", ["WINDOWS-1252", "ISO-8859-1", "UTF-16", "UTF-32"])
def test_the_error_of_another_encoding_names_it_and_the_command_that_converts_it(tmp_path, encoding, text):
    """Windows-1252 differs from ISO-8859-1 in a few characters, which may occur only after the first invalid line."""
    if encoding == "ISO-8859-1":
        text = text.replace("\u2019", "\xb4")
    elif encoding == "WINDOWS-1252":
        text += "\n\u201cquoted\u201d"
    line = 2 if text.startswith("fine") and not encoding.startswith("UTF") else 1
    expected = f"line {line}: not UTF-8 text .* iconv -f {encoding} -t UTF-8 '.*' > '.*' && mv "
    with pytest.raises(ValueError, match=expected):
        list(written(tmp_path, text.encode(encoding), "my text.txt").texts(None))


def test_the_conversion_command_for_a_gzip_file_decompresses_and_compresses_again(tmp_path):
    content = gzip.compress("It\u2019s fine.\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"gzip -dc .*a.txt.gz \| iconv -f WINDOWS-1252 -t UTF-8 \| gzip > "):
        list(written(tmp_path, content, "a.txt.gz").texts(None))


def test_a_byte_order_mark_is_dropped_and_a_truncated_character_is_an_error(tmp_path):
    assert list(written(tmp_path, "\ufeffa\n\ufeffb\n").texts(None)) == ["a\n", "\ufeffb\n"]
    with pytest.raises(ValueError, match="line 2: not UTF-8 text"):
        list(written(tmp_path, b"a\n\xe2\x80").texts(None))


# Files and folders.


def test_the_texts_of_a_folder_are_its_txt_files_in_any_letter_case_except_hidden_ones(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no .*txt.* holds: nothing"):
        check_there(tmp_path)
    (tmp_path / "table.csv").write_text("a,b", "utf-8")
    with pytest.raises(FileNotFoundError, match="has no .*txt.* holds: table.csv"):
        check_there(tmp_path)
    for name in ("b.TXT", "a.txt", "c.txt.gz", "._a.txt", "notes.md", "d.gz"):
        (tmp_path / name).write_text("The owl sees the moon.", "utf-8")
    (tmp_path / "dir.txt").mkdir()
    logged = []
    with source_files(tmp_path, tmp_path, logged.append) as sources:
        assert [Path(source.name).name for source in sources] == ["a.txt", "b.TXT", "c.txt.gz"]
    names = "d.gz, dir.txt/, notes.md, table.csv"
    assert logged == [f"warning: only *.txt and *.txt.gz files of {tmp_path} are read, not {names}"]


@pytest.mark.parametrize(
    ("name", "message"), [("none.txt", "does not exist"), ("/dev/null", "is not a file, folder or pipe")]
)
def test_a_missing_or_unsupported_source_is_an_error(tmp_path, name, message):
    with pytest.raises(FileNotFoundError, match=f"{message}: expected a text file, or a folder of them"):
        check_there(tmp_path / name)
