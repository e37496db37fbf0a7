"""A text on disk: read where it is asked for, never from a file that changed."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from byhand.corpus import text_file
from byhand.corpus.dataset import ByteDataset
from byhand.corpus.text_file import BLOCK, TextFile, blocks
from byhand.errors import DataError

CONTENT = bytes(range(256)) * 20


@pytest.fixture(params=["kept in memory", "read in parts"], autouse=True)
def kept(request, monkeypatch):
    if request.param == "read in parts":
        monkeypatch.setattr(text_file, "IN_MEMORY", 0)
    return request.param


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("part", [slice(None), slice(3, 9), slice(-5, None), slice(9, 3), slice(0, 10**9)])
def test_slices_are_those_of_bytes(path, part):
    text = TextFile(path)
    assert len(text) == len(CONTENT)
    assert text[part].tobytes() == CONTENT[part]
    assert text.part(100, 200)[part].tobytes() == CONTENT[100:200][part]


def test_batches_are_those_of_the_same_bytes_in_memory(path):
    on_disk, in_memory = ByteDataset(TextFile(path)), ByteDataset(CONTENT)
    for one, other in zip(on_disk.split(0.1, 16), in_memory.split(0.1, 16), strict=True):
        for make in (
            lambda d: d.sample_batch(7, 16, np.random.default_rng(3)),
            lambda d: d.spread_windows(9, 16),
        ):
            for a, b in zip(make(one), make(other), strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                np.testing.assert_array_equal(a, b)


def test_blocks_are_the_whole_part_in_order(tmp_path):
    content = os.urandom(2 * BLOCK + 17)
    (tmp_path / "text").write_bytes(content)
    text = TextFile(tmp_path / "text")
    assert b"".join(map(bytes, blocks(text))) == content
    assert b"".join(map(bytes, blocks(text.part(5, BLOCK + 9)))) == content[5 : BLOCK + 9]


CHANGES = {
    "cut": lambda p: os.truncate(p, 10),
    "emptied": lambda p: os.truncate(p, 0),
    "grown": lambda p: p.write_bytes(CONTENT + b"x"),
    "written over": lambda p: (p.write_bytes(CONTENT[::-1]), os.utime(p, ns=(1, 1))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_byte_of_a_changed_file_is_returned(path, change):
    text = TextFile(path)
    train = ByteDataset(text).split(0.1, 16)[0]
    CHANGES[change](path)
    for read in (lambda: text[:5], lambda: train.rows(np.array([0]), 5), text.require_in_place):
        with pytest.raises(DataError, match=r"text changed while it was in use") as error:
            read()
        assert "\n" not in str(error.value)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no time of the status change")
def test_bytes_that_changed_with_their_time_set_back_are_not_returned(path, kept):
    """Size and modification time are as before; memory keeps what was read."""
    text, before = TextFile(path), path.stat()
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if kept == "kept in memory":
        assert text[:5].tobytes() == CONTENT[:5]
        return
    for read in (lambda: text[:5], lambda: text.rows(np.array([0]), 5), text.require_in_place):
        with pytest.raises(DataError, match="text changed while it was in use"):
            read()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps files that are open")
def test_a_file_that_was_replaced_or_removed_is_known(path, kept):
    text = TextFile(path)
    path.rename(path.with_name("moved"))
    if kept == "kept in memory":
        assert text[:5].tobytes() == CONTENT[:5]
    with pytest.raises(DataError, match="is gone while it is in use"):
        text.require_in_place()
    path.write_bytes(CONTENT)
    with pytest.raises(DataError, match="changed while it was in use"):
        text.require_in_place()


def test_empty_missing_and_other_files_are_refused(tmp_path):
    (tmp_path / "empty").touch()
    for name, said in (("empty", "is empty"), ("missing", "No such file"), (".", "is a folder")):
        with pytest.raises(DataError, match=said):
            TextFile(tmp_path / name)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(DataError, match="is not a regular file"):
            TextFile(tmp_path / "fifo")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_the_file_is_closed_with_its_last_part(path):
    def is_open():
        return any(os.path.realpath(link) == str(path) for link in Path("/proc/self/fd").iterdir())

    part = TextFile(path).part(0, 10)
    assert is_open()
    assert len(part[:]) == 10
    del part
    assert not is_open()


def test_a_system_without_pread_reads_the_same(path):
    code = (
        "import os, sys\nfrom byhand.corpus import text_file; text_file.IN_MEMORY = 0\n"
        "if hasattr(os, 'pread'): del os.pread\n"
        "from byhand.corpus.text_file import TextFile\nfrom pathlib import Path\n"
        "sys.stdout.buffer.write(TextFile(Path(sys.argv[1])).part(7, 4000)[5:900].tobytes())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=True)
    assert done.stdout == CONTENT[12:907]


def test_a_large_text_takes_no_memory(tmp_path, kept):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 30)
    tracemalloc.start()
    train, val = ByteDataset(TextFile(tmp_path / "large")).split(0.1, 64)
    train.sample_batch(12, 64, np.random.default_rng(0))
    val.spread_windows(200, 64)
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()
