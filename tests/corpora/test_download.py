"""A download is complete and verified, or fails with a one-line error and leaves no file under its final name."""

import hashlib

import pytest
from file_server import FileServer, unused_url

from text_infilling.corpora import download as download_module
from text_infilling.corpora.download import DownloadError, RemoteFile, download, git_blob_sha1

BODY = b"".join(b"line %d of the file .\n" % number for number in range(20_000))
PATH = "data/lines.txt"
FILE = RemoteFile(PATH, f"sha256:{hashlib.sha256(BODY).hexdigest()}", len(BODY))
UNSIZED = RemoteFile(PATH, f"sha256:{hashlib.sha256(BODY).hexdigest()}")


@pytest.fixture
def server():
    with FileServer({PATH: BODY}) as running:
        yield running


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_one_helpful_line(error, url):
    message = str(error.value)
    assert "\n" not in message
    assert url in message and "give data_dir" in message and "corpus=synthetic" in message
    assert isinstance(error.value, OSError)


def test_the_hash_of_a_git_blob_is_that_of_git(tmp_path):
    path = tmp_path / "hello"
    path.write_bytes(b"hello\n")

    assert git_blob_sha1(path) == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize("file", [FILE, UNSIZED], ids=["size known", "size unknown"])
def test_a_file_is_downloaded_into_a_new_folder(server, tmp_path, file):
    path = download(file, tmp_path / "new" / "folder", server.url + "/")

    assert path.read_bytes() == BODY
    assert names(path.parent) == ["lines.txt"]
    assert server.requests == [(PATH, None)]


def test_a_git_digest_is_verified(server, tmp_path):
    digest = hashlib.sha1(b"blob %d\0" % len(BODY) + BODY).hexdigest()

    assert download(RemoteFile(PATH, f"git:{digest}"), tmp_path, server.url).read_bytes() == BODY


def test_a_verified_file_is_not_downloaded_again(server, tmp_path):
    download(FILE, tmp_path, server.url)
    download(FILE, tmp_path, server.url)

    assert len(server.requests) == 1


def test_a_damaged_file_is_replaced(server, tmp_path):
    (tmp_path / "lines.txt").write_bytes(b"damaged")

    assert download(FILE, tmp_path, server.url).read_bytes() == BODY


@pytest.mark.parametrize("file", [FILE, UNSIZED], ids=["size known", "size unknown"])
def test_a_broken_transfer_resumes_where_it_broke_off(server, tmp_path, file):
    server.cuts = [100_000, 50_000]

    assert download(file, tmp_path, server.url).read_bytes() == BODY
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_a_truncated_body_is_an_error_and_the_next_call_resumes_from_it(server, tmp_path):
    server.cuts = [100_000]
    with pytest.raises(DownloadError, match="cut short at 100,000 of") as error:
        download(FILE, tmp_path, server.url, attempts=1)
    assert_one_helpful_line(error, f"{server.url}/{PATH}")
    assert names(tmp_path) == ["lines.txt.part"]

    assert download(FILE, tmp_path, server.url).read_bytes() == BODY
    assert server.requests[-1] == (PATH, "bytes=100000-")
    assert names(tmp_path) == ["lines.txt"]


def test_download_gives_up_if_an_attempt_receives_no_bytes(server, tmp_path):
    server.cuts = [0] * 10
    with pytest.raises(DownloadError, match="cut short at 0 of"):
        download(FILE, tmp_path, server.url, attempts=8)

    assert len(server.requests) == 1


def test_a_broken_transfer_restarts_if_the_server_does_not_support_ranges(server, tmp_path):
    server.knows_ranges = False
    server.cuts = [100_000]

    assert download(FILE, tmp_path, server.url).read_bytes() == BODY
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-"]


@pytest.mark.parametrize("file", [FILE, UNSIZED], ids=["size known", "size unknown"])
@pytest.mark.parametrize(
    "left", [BODY, b"x" * len(BODY), b"x" * 1000, BODY + b"x"], ids=["whole", "other", "other start", "too long"]
)
def test_any_part_left_by_an_earlier_transfer_is_resumed_or_replaced(server, tmp_path, file, left):
    (tmp_path / "lines.txt.part").write_bytes(left)

    assert download(file, tmp_path, server.url).read_bytes() == BODY
    assert names(tmp_path) == ["lines.txt"]


def test_a_wrong_checksum_is_an_error_and_leaves_no_file(server, tmp_path):
    server.files[PATH] = BODY.replace(b"7", b"8")
    with pytest.raises(DownloadError, match="wrong checksum") as error:
        download(FILE, tmp_path, server.url)

    assert_one_helpful_line(error, f"{server.url}/{PATH}")
    assert names(tmp_path) == []


def test_a_missing_file_is_an_error_without_retry(server, tmp_path):
    with pytest.raises(DownloadError, match="HTTP 404") as error:
        download(RemoteFile("data/none.txt", FILE.digest), tmp_path, server.url)

    assert_one_helpful_line(error, f"{server.url}/data/none.txt")
    assert len(server.requests) == 1
    assert names(tmp_path) == []


def test_no_network_is_an_error(tmp_path):
    url = unused_url()
    with pytest.raises(DownloadError, match="refused") as error:
        download(FILE, tmp_path, url)

    assert_one_helpful_line(error, f"{url}/{PATH}")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("terminal", "expected"),
    [
        (True, "\rdownloading a.txt: 1.0 of 4.0 MB (25%)\033[K\rdownloading a.txt: 4.0 of 4.0 MB (100%)\033[K\n"),
        (False, "downloading a.txt: 1.0 of 4.0 MB (25%)\ndownloading a.txt: 4.0 of 4.0 MB (100%)\n"),
    ],
)
def test_progress_rewrites_one_line_on_a_terminal_and_prints_few_lines_elsewhere(
    monkeypatch, capsys, terminal, expected
):
    now = [0.0]
    monkeypatch.setattr(download_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(download_module.sys.stderr, "isatty", lambda: terminal, raising=False)
    with download_module._progress("a.txt", 4_000_000) as show:
        for seconds, done in ((0.01, 500_000), (11.0, 1_000_000), (11.01, 2_000_000), (22.0, 4_000_000)):
            now[0] = seconds
            show(done)

    assert capsys.readouterr().err == expected
