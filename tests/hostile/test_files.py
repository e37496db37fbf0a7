"""Files that others made or damaged: one line each, at once, in bounded memory; the attacks by seed run on in
`dev.py fuzz`."""

import json
import os
import sys
import tracemalloc

import numpy as np
import pytest

from byhand.errors import ByhandError, CheckpointError
from byhand.files import sealed
from byhand.files.run_folder import MANIFEST, MODEL
from byhand.interop.seed_program import checkpoint as seed_files
from byhand.runs import checkpoint, metrics
from byhand.runs.contents import CONFIG, FILES, OPTIMIZER, STATE, TOKENIZER
from byhand.tokenizers import vocab_files
from hostile import checkpoints, seed_checkpoints
from hostile.outcome import soon

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs and links")


@pytest.fixture
def bounded():
    """Fails a test that took over 50 MB, or too long."""
    tracemalloc.start()
    with soon("a damaged file"):
        yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def write(run, files):
    path = run / "step-00000002"
    path.mkdir(parents=True)
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def forged(part, **changes):
    """A checkpoint with right hashes whose config or state says something else."""
    files = dict(checkpoints.pristine())
    values = json.loads(files[part])
    (values["model"] if part == CONFIG else values).update(changes)
    files[part] = json.dumps(values).encode()
    files[MANIFEST] = sealed.manifest(sealed.entries({name: [files[name]] for name in (*FILES, TOKENIZER)}))
    return files


def sparse(path, size):
    with path.open("r+b") as file:
        file.truncate(size)


def refused(run):
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(run)
    assert str(error.value).isprintable()
    assert checkpoint.defect(run / "step-00000002")
    return str(error.value)


@pytest.mark.parametrize(
    ("part", "changes", "said"),
    [
        (CONFIG, {"d_model": 10**10}, "d_model is 10000000000, but can be at most"),
        (CONFIG, {"d_model": 10**10, "n_heads": 7}, "d_model is 10000000000, but can be at most"),
        (CONFIG, {"n_layers": 10**9}, "n_layers is 1000000000, but can be at most"),
        (CONFIG, {"d_model": 131071, "n_heads": 7}, "does not divide"),
        (CONFIG, {"n_layers": 1024, "d_model": 131072}, "its arrays alone have 844,429,777,698,860"),
        (CONFIG, {"vocab_size": 1 << 20, "seq_len": 1 << 20}, "its arrays alone have 54,526,864"),
        (STATE, {"step": 10**300}, "not a trainer's state"),
        (STATE, {"step": True}, "not a trainer's state"),
        (STATE, {"text": "x"}, "not a trainer's state"),
    ],
)
def test_forged_sizes_build_nothing(tmp_path, bounded, part, changes, said):
    write(tmp_path, forged(part, **changes))
    assert said in refused(tmp_path)


@pytest.mark.parametrize("name", [*FILES, TOKENIZER, MANIFEST])
@pytest.mark.parametrize("content", [b"[" * 10**6, b'{"a":' * 10**5, b"9" * 10**6, b'"' + b"\\" * 10**6], ids=len)
def test_deep_and_long_json_is_refused(tmp_path, bounded, name, content):
    files = dict(checkpoints.pristine())
    header = (len(content).to_bytes(8, "little") if name in (MODEL, OPTIMIZER) else b"") + content
    files[name] = header
    if name != MANIFEST:
        files[MANIFEST] = sealed.manifest(sealed.entries({n: [files[n]] for n in (*FILES, TOKENIZER)}))
    write(tmp_path, files)
    refused(tmp_path)


@posix
@pytest.mark.parametrize("name", [*FILES, TOKENIZER, MANIFEST])
@pytest.mark.parametrize("kind", ["fifo", "zero", "folder", "loop", "dangling"])
def test_what_is_no_file_is_not_read(tmp_path, bounded, name, kind):
    path = write(tmp_path, checkpoints.pristine()) / name
    path.unlink()
    make = {
        "fifo": lambda: os.mkfifo(path),
        "zero": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
        "loop": lambda: path.symlink_to(name),
        "dangling": lambda: path.symlink_to("nowhere"),
    }
    make[kind]()
    assert name in refused(tmp_path)


@posix
@pytest.mark.parametrize("name", [*FILES, TOKENIZER, MANIFEST])
def test_files_without_end_are_not_read(tmp_path, bounded, name):
    """A terabyte of zeros, and a manifest that says so."""
    path = write(tmp_path, checkpoints.pristine())
    sparse(path / name, 10**12)
    refused(tmp_path)
    if name != MANIFEST:
        manifest = json.loads((path / MANIFEST).read_bytes())
        manifest["files"][name]["bytes"] = 10**12
        (path / MANIFEST).write_bytes(sealed.as_json(manifest))
        refused(tmp_path)


@posix
def test_a_model_beyond_memory_is_not_read(tmp_path, bounded):
    """Everything belongs together and the files are as large as they should be: terabytes, with a hole in them."""
    files = forged(CONFIG, d_model=1 << 16, n_layers=8)
    from byhand.config import ModelConfig
    from byhand.files.tensor_file import sizes
    from byhand.model import parameter_shapes

    shapes = parameter_shapes(ModelConfig(vocab_size=11, seq_len=8, d_model=1 << 16, n_heads=2, n_layers=8))
    path = write(tmp_path, files)
    manifest = json.loads(files[MANIFEST])
    for name, count in ((MODEL, 1), (OPTIMIZER, 2)):
        size = sizes(shapes, "float32")[0] * count + 100
        try:
            sparse(path / name, size)
        except OSError:
            pytest.skip("the file system has no such files")
        manifest["files"][name]["bytes"] = size
    (path / MANIFEST).write_bytes(sealed.as_json(manifest))
    assert "more than this machine's memory" in refused(tmp_path)


def test_models_are_read_without_their_moments(tmp_path, monkeypatch):
    path = write(tmp_path, checkpoints.pristine())
    read = []
    original = sealed.Sealed.reading
    monkeypatch.setattr(
        sealed.Sealed, "reading", lambda self, name, most: read.append(name) or original(self, name, most)
    )
    model = checkpoint.load_model(tmp_path)
    assert OPTIMIZER not in read
    assert MODEL in read
    assert np.isfinite(model.parameters()["wte"].data).all()
    loaded = checkpoint.load(tmp_path, moments=False)
    assert (loaded.moments, loaded.step) == ({}, 2)
    # one that was cut is no whole checkpoint all the same
    sparse(path / OPTIMIZER, 100)
    with pytest.raises(CheckpointError, match="optimizer"):
        checkpoint.load_model(tmp_path)


@posix
@pytest.mark.parametrize("name", ["x.json", "x.bin"])
@pytest.mark.parametrize("kind", ["fifo", "zero", "endless", "deep"])
def test_seed_files_that_are_none(tmp_path, bounded, name, kind):
    for file, content in zip(("x.json", "x.bin"), seed_checkpoints.pristine(), strict=True):
        (tmp_path / file).write_bytes(content)
    path = tmp_path / name
    if kind == "endless":
        sparse(path, 10**12)
    else:
        path.unlink()
    if kind == "deep":
        path.write_bytes(b"[" * 10**6)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    with pytest.raises(CheckpointError) as error:
        seed_files.load(str(tmp_path / "x"))
    assert name in str(error.value)


@posix
@pytest.mark.parametrize("kind", ["fifo", "zero", "endless", "deep"])
@pytest.mark.parametrize("name", ["vocab.json", "merges.txt", metrics.METRICS])
def test_tokenizer_files_and_metrics_that_are_none(tmp_path, bounded, name, kind):
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    (tmp_path / "merges.txt").write_text("")
    path = tmp_path / name
    path.unlink(missing_ok=True)
    if kind == "endless":
        path.touch()
        sparse(path, 10**12)
    elif kind == "deep":
        path.write_bytes(b"[" * 10**6)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    if name == metrics.METRICS and kind == "deep":
        assert metrics.read(tmp_path) == []
        return
    read = {
        metrics.METRICS: lambda: metrics.read(tmp_path),
        "vocab.json": lambda: vocab_files.read(tmp_path / "vocab.json", tmp_path / "merges.txt"),
    }
    with pytest.raises(ByhandError) as error:
        read.get(name, read["vocab.json"])()
    assert name in str(error.value)
    assert str(error.value).isprintable()
