"""Checkpoints of nanoGPT: what is refused before torch sees it, and a clear line where torch is not installed."""

import importlib.util
import zipfile

import pytest

from byhand.errors import DataError
from byhand.interop import exchange

TORCH = importlib.util.find_spec("torch") is not None


def archive(path, files, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


def refused(path):
    with pytest.raises(DataError) as error:
        exchange.read(path)
    assert str(error.value).isprintable()
    return str(error.value)


@pytest.mark.parametrize(
    ("files", "method"),
    [
        ({"archive/version": b"3"}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"", "other/data.pkl": b""}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"\0" * 100_000}, zipfile.ZIP_DEFLATED),
        ({"archive/data.pkl": bytes((1 << 24) + 1)}, zipfile.ZIP_STORED),
    ],
)
def test_a_zip_that_torch_would_not_write_is_refused(files, method, tmp_path):
    assert "is no whole checkpoint of torch" in refused(archive(tmp_path / "ckpt.pt", files, method))


def test_a_zip_that_is_cut_is_refused(tmp_path):
    path = archive(tmp_path / "ckpt.pt", {"archive/data.pkl": b"\x80\x02}."})
    path.write_bytes(path.read_bytes()[:-10])
    assert "is no whole checkpoint of torch" in refused(path)


@pytest.mark.skipif(TORCH, reason="torch is installed")
def test_without_torch_one_line_says_so(tmp_path):
    assert "is a checkpoint of torch, which is not installed" in refused(
        archive(tmp_path / "ckpt.pt", {"archive/data.pkl": b"\x80\x02}."})
    )
