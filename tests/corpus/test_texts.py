"""Where texts come from."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from byhand.corpus.text_file import TextFile
from byhand.corpus.texts import cached_download, open_text
from byhand.errors import DataError
from byhand.files import run_folder
from byhand.files.sealed import entries, manifest


def test_a_folder_is_its_text_files_in_order_of_path(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.txt").write_text("2")
    (tmp_path / "a.txt").write_text("1")
    (tmp_path / "c.md").write_text("3")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "picture").write_bytes(b"\x89PNG\0\0")
    text = open_text(str(tmp_path))
    assert text.content[:].tobytes() == b"1\0002\0003\0"
    assert text.path is None
    assert text.documents


def test_the_standard_library_is_megabytes_of_source_in_a_fixed_order():
    text = open_text("python-stdlib")
    assert len(text.content) > 3_000_000
    assert b"site-packages" not in text.name.encode()
    assert hashlib.sha256(text.content).digest() == hashlib.sha256(open_text("python-stdlib").content).digest()
    assert b"class OrderedDict" in text.content.tobytes()


def test_a_file_stays_on_disk(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"some text")
    text = open_text(str(path))
    assert text.path == path.resolve()
    assert isinstance(text.content, TextFile)
    assert text.content[:].tobytes() == b"some text"


def test_runs_and_checkpoints_are_no_text_and_files_of_the_same_names_are(tmp_path):
    """Recognised by content: a user's own manifest.json or metrics.jsonl does not make a run."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "manifest.json").write_text("1")
    (notes / "metrics.jsonl").write_text('{"text": "2"}')
    run = tmp_path / "run"
    run_folder.begin(run)
    (run / "metrics.jsonl").write_text("no")
    best = tmp_path / "best"
    best.mkdir()
    (best / "manifest.json").write_bytes(manifest(entries({"model.safetensors": [b""]})))
    (best / "model.safetensors").write_text("no")
    assert open_text(str(tmp_path)).content[:].tobytes() == b"1\0002\0"


def test_missing_and_empty_sources_are_refused(tmp_path):
    with pytest.raises(DataError, match="there is no file or folder"):
        open_text(str(tmp_path / "missing"))
    with pytest.raises(DataError, match="holds no text"):
        open_text(str(tmp_path))


@pytest.fixture
def server():
    """A loopback server that counts requests and answers with a fixed text."""

    class Handler(BaseHTTPRequestHandler):
        requests = 0

        def do_GET(self):
            Handler.requests += 1
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"To be, or not to be")

        def log_message(self, *arguments):
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}/text", Handler
    http.shutdown()
    thread.join()
    http.server_close()


def test_a_download_is_checked_and_kept(server, tmp_path):
    url, handler = server
    good = hashlib.sha256(b"To be, or not to be").hexdigest()
    target = tmp_path / "cache" / "text"
    for _ in range(2):
        assert cached_download(url, good, target).read_bytes() == b"To be, or not to be"
    assert handler.requests == 1
    target.write_bytes(b"altered")
    assert cached_download(url, good, target).read_bytes() == b"To be, or not to be"
    assert handler.requests == 2


def test_a_download_with_another_hash_is_not_kept(server, tmp_path):
    with pytest.raises(DataError, match="has SHA-256"):
        cached_download(server[0], "0" * 64, tmp_path / "text")
    assert list(tmp_path.iterdir()) == []


def test_without_network_the_error_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"cannot download .* pass a file of your own with --data"):
        cached_download("http://127.0.0.1:9/text", "0" * 64, tmp_path / "text")
