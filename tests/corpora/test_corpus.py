"""`load_corpus` looks in a fixed order, checks what it finds, and never substitutes a corpus silently."""

import hashlib
import json
from dataclasses import replace

import pytest
from file_server import FileServer, unused_url

from text_infilling.corpora.corpus import ORIGIN_FILE, SPLITS, YELP, load_corpus
from text_infilling.corpora.download import DownloadError, RemoteFile, git_blob_sha1
from text_infilling.corpora.synthetic import reviews

LENGTHS = (3, 10, 16, 12, 9, 15, 11, 40, 13)  # Line lengths of the stand-in files, repeated; five of nine are kept.


def text_of(name, lines):
    """Returns a stand-in for a public file: line k begins with its number, and its length is from `LENGTHS`."""
    rows = [f"{name}{k} " + "x " * (LENGTHS[(k - 1) % len(LENGTHS)] - 2) + "." for k in range(1, lines + 1)]
    return ("\n".join(rows) + "\n").encode()


FILES = {
    "d/sentiment.train.1": text_of("a", 900),
    "d/sentiment.dev.1": text_of("b", 90),
    "d/sentiment.test.1": text_of("c", 90),
}


@pytest.fixture(autouse=True)
def no_real_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path / "cache"))


@pytest.fixture
def server():
    with FileServer(dict(FILES)) as running:
        yield running


@pytest.fixture
def release(server):
    def remote(name):
        body = FILES[f"d/{name}"]
        return RemoteFile(f"d/{name}", f"sha256:{hashlib.sha256(body).hexdigest()}", len(body))

    train = FILES["d/sentiment.train.1"]
    blob = hashlib.sha1(b"blob %d\0" % len(train) + train).hexdigest()
    return replace(
        YELP,
        base_url=server.url,
        train=RemoteFile("d/sentiment.train.1", f"git:{blob}"),
        valid=remote("sentiment.dev.1"),
        test=remote("sentiment.test.1"),
        valid_lines=7,
        test_lines=20,
        last_test_line=36,
    )


def write_yelp(folder, train="a b c .\n", valid="d e f .\n", test="g h i .\n"):
    """Creates `folder/yelp` and returns `folder`."""
    (folder / "yelp").mkdir(parents=True)
    for name, text in (("train", train), ("valid", valid), ("test", test)):
        (folder / "yelp" / f"{name}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def lines_of(path):
    return path.read_text("utf-8").splitlines()


def never(message):
    raise AssertionError(f"unexpected warning: {message}")


def test_data_dir_comes_first(tmp_path):
    write_yelp(tmp_path / "cache", train="from the cache .\n")
    data_dir = write_yelp(tmp_path / "data")

    corpus = load_corpus("auto", data_dir, log=never)

    assert (corpus.name, corpus.source) == ("yelp", "data_dir")
    assert corpus.train == data_dir / "yelp" / "train.txt"
    assert "train is not a file known" in corpus.note and "test is not the paper's" in corpus.note


def test_the_cache_comes_before_a_download(tmp_path):
    write_yelp(tmp_path / "cache")

    corpus = load_corpus("yelp", release=replace(YELP, base_url=unused_url()))

    assert corpus.source == "cache"
    assert corpus.test == tmp_path / "cache" / "yelp" / "test.txt"


def test_checksum_is_that_of_the_three_files_in_order(tmp_path):
    texts = {"train": "one .\n", "valid": "two .\n", "test": "three .\n"}
    corpus = load_corpus("yelp", write_yelp(tmp_path / "a", **texts))
    swapped = load_corpus("yelp", write_yelp(tmp_path / "b", train="two .\n", valid="one .\n", test="three .\n"))
    hashes = "".join(hashlib.sha256(text.encode()).hexdigest() for text in texts.values())

    assert corpus.checksum == hashlib.sha256(hashes.encode()).hexdigest()
    assert swapped.checksum != corpus.checksum


def test_the_shared_yelp_files_are_recognised(shared):
    corpus = load_corpus("auto", shared / "data", log=never)

    assert "stand-in for the paper's 104K" in corpus.note
    assert "test is not" not in corpus.note
    assert len(lines_of(corpus.test)) == 1000


def test_download_selects_the_sentences_as_the_paper_does(tmp_path, server, release):
    corpus = load_corpus("yelp", release=release)

    kept = [k for k in range(1, 901) if LENGTHS[(k - 1) % 9] in (10, 12, 15, 11, 13)]
    assert [line.split()[0] for line in lines_of(corpus.train)] == [f"a{k}" for k in kept]
    assert [line.split()[0] for line in lines_of(corpus.valid)] == [f"b{k}" for k in kept[:7]]
    assert [line.split()[0] for line in lines_of(corpus.test)] == [f"c{k}" for k in kept[:20]]
    assert {len(line.split()) for line in lines_of(corpus.train)} == {10, 11, 12, 13, 15}
    assert corpus.source == "sentiment.train.1 (downloaded)"
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [".lock", "yelp"]


def test_a_second_load_does_not_download_again(server, release):
    first = load_corpus("yelp", release=release)
    asked = len(server.requests)
    second = load_corpus("auto", release=release, log=never)

    assert second == first
    assert len(server.requests) == asked == 3


def test_the_next_load_resumes_a_failed_download(tmp_path, server, release):
    del server.files["d/sentiment.test.1"]
    with pytest.raises(DownloadError, match="404"):
        load_corpus("yelp", release=release)
    assert not (tmp_path / "cache" / "yelp").exists()
    server.files.update(FILES)

    corpus = load_corpus("yelp", release=release)

    assert len(lines_of(corpus.test)) == 20
    assert [path for path, _ in server.requests].count("d/sentiment.train.1") == 1


def test_a_selection_that_does_not_end_on_the_papers_line_is_an_error(tmp_path, release):
    with pytest.raises(ValueError, match="20 sentences up to line 36 instead of the paper's 20 up to line 37"):
        load_corpus("yelp", release=replace(release, last_test_line=37))

    assert not [path for path in (tmp_path / "cache").iterdir() if "yelp" in path.name]


def test_a_file_changed_after_its_download_is_an_error(tmp_path, release):
    corpus = load_corpus("yelp", release=release)
    corpus.train.write_text("other text .\n", "utf-8")

    with pytest.raises(ValueError, match="changed since their download"):
        load_corpus("auto", release=release, log=never)


def test_auto_falls_back_with_one_warning_that_names_the_reason(tmp_path):
    url = unused_url()
    warnings = []

    corpus = load_corpus("auto", release=replace(YELP, base_url=url), log=warnings.append)

    assert corpus.name == "synthetic"
    assert len(warnings) == 1 and "\n" not in warnings[0]
    assert url in warnings[0] and "synthetic" in warnings[0] and "give data_dir" in warnings[0]


def test_yelp_does_not_fall_back():
    with pytest.raises(DownloadError):
        load_corpus("yelp", release=replace(YELP, base_url=unused_url()), log=never)


def test_synthetic_needs_no_network_and_is_cached(tmp_path):
    first = load_corpus("synthetic", log=never)
    made = first.train.stat().st_mtime_ns
    second = load_corpus("synthetic", log=never)

    assert (first.name, first.train) == ("synthetic", tmp_path / "cache" / "synthetic" / "train.txt")
    assert "2019" in first.source and first.note
    assert second == first and second.train.stat().st_mtime_ns == made


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_damaged_synthetic_corpus_is_regenerated(damage):
    corpus = load_corpus("synthetic")
    if damage == "changed":
        corpus.test.write_text("not ours .\n", "utf-8")
    else:
        corpus.test.unlink()

    assert hashlib.sha256(load_corpus("synthetic").test.read_bytes()).hexdigest() == reviews.SHA256["test"]


@pytest.mark.parametrize("name", ["auto", "yelp"])
def test_a_data_dir_without_yelp_is_an_error_rather_than_a_fallback(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=r"no folder yelp/ .*data_dir="):
        load_corpus(name, tmp_path / "nowhere", log=never)


def test_a_missing_file_is_named(tmp_path):
    data_dir = write_yelp(tmp_path / "data")
    (data_dir / "yelp" / "valid.txt").unlink()

    with pytest.raises(FileNotFoundError, match="valid.txt.*data_dir"):
        load_corpus("yelp", data_dir)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "test.txt holds no sentence"),
        (b"\n  \n", "test.txt holds no sentence"),
        (b"good line .\n" * 200_000 + b"caf\xe9 .\n", "test.txt, line 200001: not UTF-8"),
        (b"good line .\ncut off \xe2\x82", "test.txt, line 2: not UTF-8"),
    ],
    ids=["empty", "blank", "latin-1", "cut in a character"],
)
def test_a_bad_file_gives_a_one_line_error_with_a_remedy(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as error:
        load_corpus("yelp", write_yelp(tmp_path / "data", test=text))

    remedy = "iconv" if "UTF-8" in message else "data_dir"
    assert remedy in str(error.value) and "\n" not in str(error.value)


def test_an_unknown_corpus_names_the_flag():
    with pytest.raises(ValueError, match="expected one of auto, yelp, synthetic"):
        load_corpus("imdb")


def test_the_release_is_the_pinned_one():
    """The release is one commit, with a full digest for each file."""
    assert YELP.base_url.endswith("/shentianxiao/language-style-transfer/f078a9d342705ea62b04dd3ac5926d3467c2ac63")
    assert [len(getattr(YELP, split).digest.split(":")[1]) for split in SPLITS] == [40, 64, 64]


def test_the_origin_of_a_download_is_recorded_in_its_folder(release):
    corpus = load_corpus("yelp", release=release)
    origin = json.loads((corpus.train.parent / ORIGIN_FILE).read_text("utf-8"))

    assert origin["base_url"] == release.base_url
    assert set(origin["sha256"]) == set(SPLITS)
    assert git_blob_sha1(corpus.train) != release.train.digest
