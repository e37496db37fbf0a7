"""Weights that stay in their file until a decoder takes them: the same numbers, and never others."""

import errno
import mmap
import os
import subprocess
import sys

import numpy as np
import pytest

from byhand.errors import CheckpointError, DataError
from byhand.files import hashing, sealed, weights
from byhand.files.unread import Unread, read
from byhand.generation import Engine, Sampling
from byhand.runs import checkpoint
from byhand.runtimes.streams import Stream
from interrupts import at_every_point
from needs import needs_loops
from runs.saving import example

PROMPT = [1, 2, 3]
PATIENCE = 60  # seconds: sixty times what it takes


def saved(tmp_path):
    return checkpoint.save(tmp_path / "run", example())


def test_they_are_the_arrays_that_loading_gives(tmp_path):
    path = saved(tmp_path)
    whole, unread = (checkpoint.load(path, moments=False, unread=unread) for unread in (False, True))
    for name, array in whole.parameters.items():
        left = unread.parameters[name]
        assert isinstance(left, Unread)
        assert (left.shape, left.dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(np.asarray(left), array)
    assert not any(isinstance(p.data, Unread) for p in read(unread.model()).parameters().values())


@pytest.mark.parametrize("runtime", ["numpy", pytest.param("loops", marks=needs_loops), "xla"])
def test_a_text_is_the_same(tmp_path, runtime):
    if runtime == "xla":
        pytest.importorskip("jax")
    path = saved(tmp_path)
    texts = []
    for unread in (False, True):
        model = checkpoint.load(path, moments=False, unread=unread).model()
        engine = Engine(model, runtime=runtime, moves=True)
        (stream,) = engine.finish([Stream(PROMPT, 12, Sampling(seed=3))])
        texts.append(stream.tokens)
    assert texts[0] == texts[1]


def test_numpy_rounds_arrays_that_it_may_move_where_they_are(tmp_path):
    path, texts = saved(tmp_path), []
    for moves in (False, True):
        model = checkpoint.load(path, moments=False, unread=True).model()
        engine = Engine(model, runtime="numpy", weights="bfloat16", moves=moves)
        texts.append([s.tokens for _ in range(2) for s in engine.finish([Stream(PROMPT, 12, Sampling(seed=3))])])
        assert (engine.decoder._model is model) is moves
    assert texts[0] == texts[1]


@pytest.mark.parametrize("damaged", [False, True])
def test_where_the_system_refuses_a_thread_they_are_verified_without(tmp_path, monkeypatch, damaged):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    path = saved(tmp_path)
    expected = checkpoint.load(path, moments=False).parameters
    if damaged:
        content = bytearray((path / "model.safetensors").read_bytes())
        content[-1] ^= 1
        (path / "model.safetensors").write_bytes(content)
    monkeypatch.setattr(hashing, "start_new_thread", refuse)
    if damaged:
        with pytest.raises(CheckpointError, match="SHA-256"):
            checkpoint.load(path, moments=False)
    else:
        for name, array in checkpoint.load(path, moments=False).parameters.items():
            np.testing.assert_array_equal(array, expected[name])


def test_without_memory_no_file_is_said_to_be_unreadable(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    path = saved(tmp_path)
    monkeypatch.setattr(weights, "OWN_PAGES", 1)
    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match="bytes for an array"):
        checkpoint.load(path)


def test_damage_is_found_when_they_are_loaded(tmp_path):
    path = saved(tmp_path) / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="SHA-256"):
        checkpoint.load(tmp_path / "run", moments=False, unread=True)


def test_a_file_that_goes_is_read_on_and_one_that_changes_is_refused(tmp_path):
    path = saved(tmp_path) / "model.safetensors"
    loaded = checkpoint.load(path.parent, moments=False, unread=True)
    before = {name: np.asarray(array) for name, array in loaded.parameters.items()}
    content = path.read_bytes()
    path.unlink()  # as a run does that saves a newer one
    for name, array in loaded.parameters.items():
        np.testing.assert_array_equal(np.asarray(array), before[name])
    path.write_bytes(content)
    loaded = checkpoint.load(path.parent, moments=False, unread=True)
    path.write_bytes(content[:-4] + bytes(4))
    with pytest.raises(DataError, match="changed while it was read"):
        read(loaded.model())


@pytest.mark.parametrize("other", [True, False])
def test_a_file_that_loses_its_name_while_it_is_opened_is_read_on(tmp_path, monkeypatch, other):
    """Another file has the name, or none, before anything has been read: none of its numbers counts as verified."""
    path = saved(tmp_path) / "model.safetensors"
    expected, content = checkpoint.load(path.parent, moments=False).parameters, path.read_bytes()
    opens = sealed.open_regular

    def opened(name):
        descriptor = opens(name)
        if name == path:
            path.unlink()
            if other:
                path.write_bytes(content[:-4] + bytes(4))
        return descriptor

    monkeypatch.setattr(sealed, "open_regular", opened)
    found = checkpoint.load(path.parent, moments=False, unread=True).parameters
    for name, array in found.items():
        np.testing.assert_array_equal(np.asarray(array), expected[name])


# Ctrl-C at each step of Python's own threads, queues and pools: what they lock in several steps may stay locked.
INTERRUPTED = """
import sys
from pathlib import Path
from byhand.runs import checkpoint
from interrupts import at_every_point
files = "threading.py", "futures/thread.py", "futures/_base.py", "files/hashing.py"
run = Path(sys.argv[1])
places = list(at_every_point(lambda: checkpoint.load(run, moments=False), *files, event="opcode", every=3))
assert len(places) > 20, places
checkpoint.load(run)
print("done")
"""


def test_no_interrupt_while_they_are_hashed_leads_to_waiting(tmp_path):
    """The process would wait for ever for a thread blocked on a lock that nobody releases."""
    saved(tmp_path)
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr[-500:]) == (0, "done\n", "")


@needs_loops
def test_an_interrupt_while_they_are_packed_loses_none(tmp_path):
    path, engines = saved(tmp_path), []

    def begin():
        model = checkpoint.load(path, moments=False, unread=True).model()
        engines[:] = [Engine(model, runtime="loops", threads=1, moves=True)]
        engines[0].submit(Stream(PROMPT, 4, Sampling(seed=3)))

    def tokens():
        (stream,) = engines[0].finish([Stream(PROMPT, 12, Sampling(seed=3))])
        return stream.tokens

    begin()
    expected = tokens()
    files = "run/arena.py", "run/decoding.py", "run/taking.py"
    places = at_every_point(lambda: engines[0].step(1), *files, every=7, begin=begin)
    assert len([place for place in places if tokens() == expected or pytest.fail(place)]) > 10


@pytest.mark.skipif(sys.platform == "win32", reason="it has no time of change that cannot be set back")
def test_a_changed_file_whose_time_was_set_back_is_refused_and_one_with_a_new_link_or_mode_is_not(tmp_path):
    path = saved(tmp_path) / "model.safetensors"
    loaded, before = checkpoint.load(path.parent, moments=False, unread=True), path.stat()
    expected = {name: np.asarray(array) for name, array in loaded.parameters.items()}
    os.link(path, tmp_path / "another name")
    path.chmod(0o600)
    assert path.stat().st_ctime_ns != before.st_ctime_ns
    for name, array in loaded.parameters.items():
        np.testing.assert_array_equal(np.asarray(array), expected[name])
    with path.open("r+b") as file:
        file.seek(-4, 2)
        file.write(bytes(4))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DataError, match="changed while it was read"):
        read(loaded.model())
