"""The original program's files: read, written, and refused when they are not what they should be."""

import json
import struct
import sys

import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.corpus.dataset import ByteDataset
from byhand.errors import CheckpointError, ConfigError
from byhand.interop.seed_program.checkpoint import SeedCheckpoint, load, prepare, save
from byhand.interop.seed_program.training import start, train
from byhand.model import TinyGPT
from byhand.optim import AdamW
from interop.golden import RUN, golden
from interop.test_seed_training import SYNTHETIC, dataset, losses, small

HEADER = 28


@pytest.fixture
def saved(tmp_path):
    """A trained checkpoint and the prefix of its files."""
    checkpoint = small()
    list(train(checkpoint, dataset(SYNTHETIC), 3, 2, 5))
    save(str(tmp_path / "a.b"), checkpoint)
    return checkpoint, tmp_path / "a.b"


def parts(prefix):
    return prefix.parent / f"{prefix.name}.json", prefix.parent / f"{prefix.name}.bin"


def test_everything_comes_back(saved):
    checkpoint, prefix = saved
    again = load(str(prefix))
    assert (again.step, again.has_optimizer, again.optimizer.t) == (3, True, 3)
    assert again.model.config == checkpoint.model.config
    assert again.optimizer.settings == checkpoint.optimizer.settings
    assert again.optimizer.lr == float(np.float32(0.01))
    assert (again.optimizer.settings.eps, again.optimizer.settings.weight_decay) == (
        float(np.float32(1e-8)),
        float(np.float32(0.01)),
    )
    for name, parameter in checkpoint.model.parameters().items():
        assert np.array_equal(again.model.parameters()[name].data, parameter.data), name
        assert np.array_equal(again.optimizer.moments["m"][name], checkpoint.optimizer.moments["m"][name]), name
        assert np.array_equal(again.optimizer.moments["v"][name], checkpoint.optimizer.moments["v"][name]), name


def test_layout_of_the_binary(saved):
    checkpoint, prefix = saved
    content = parts(prefix)[1].read_bytes()
    assert struct.unpack_from("<8sIIQI", content) == (b"BGPTCKPT", 1, 1, 3, 20)
    assert struct.unpack_from("<Q", content, HEADER) == (256 * 12,)
    wte = np.frombuffer(content, "<f4", 256 * 12, HEADER + 8)
    assert np.array_equal(wte, checkpoint.model.parameters()["wte"].data.ravel())
    n = sum(p.data.size for p in checkpoint.model.parameters().values())
    assert len(content) == HEADER + 20 * 8 + 4 * n + 8 + 8 * n
    moments = np.frombuffer(content, "<f4", -1, HEADER + 20 * 8 + 4 * n + 8)
    assert np.array_equal(moments[256 * 12 : 2 * 256 * 12], checkpoint.optimizer.moments["v"]["wte"].ravel())


def test_saving_again_gives_the_same_bytes(saved, tmp_path):
    _, prefix = saved
    save(str(tmp_path / "again"), load(str(prefix)))
    for one, other in zip(parts(prefix), parts(tmp_path / "again"), strict=True):
        assert one.read_bytes() == other.read_bytes()


@golden
def test_the_golden_checkpoint_loads_and_saves_to_the_same_bytes(tmp_path):
    checkpoint = load(str(RUN))
    assert checkpoint.model.config == ModelConfig(seq_len=32, d_model=48, n_layers=2)
    assert (checkpoint.step, checkpoint.optimizer.t, checkpoint.optimizer.lr) == (60, 60, float(np.float32(0.001)))
    assert (
        set(checkpoint.optimizer.moments["m"])
        == set(checkpoint.optimizer.moments["v"])
        == set(checkpoint.model.parameters())
    )
    save(str(tmp_path / "seed_a"), checkpoint)
    for one, other in zip(parts(RUN), parts(tmp_path / "seed_a"), strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert json.loads(parts(RUN)[0].read_text()) == json.loads(parts(tmp_path / "seed_a")[0].read_text())


def test_going_on_after_a_load_is_going_on(tmp_path):
    text, other = dataset(SYNTHETIC), ByteDataset(np.frombuffer(SYNTHETIC[::-1], np.uint8))
    whole = small()
    list(train(whole, text, 4, 2, 5))
    save(str(tmp_path / "half"), whole)
    rest = list(train(whole, other, 10, 2, 6))
    resumed = load(str(tmp_path / "half"))
    lines = list(train(resumed, other, 10, 2, 6))
    assert losses(lines) == losses(rest)
    assert list(losses(lines)) == [5, 14]
    for name, parameter in whole.model.parameters().items():
        assert np.array_equal(resumed.model.parameters()[name].data, parameter.data), name


def test_without_optimizer_it_starts_afresh(saved, tmp_path):
    checkpoint, _ = saved
    checkpoint.has_optimizer = False
    save(str(tmp_path / "bare"), checkpoint)
    again = load(str(tmp_path / "bare"))
    assert (again.step, again.has_optimizer, again.optimizer.t, again.optimizer.moments["m"]) == (3, False, 0, {})
    assert again.optimizer.lr == float(np.float32(0.01))


def test_an_optimizer_without_steps_is_saved_as_zeros(tmp_path):
    save(str(tmp_path / "new"), start(ModelConfig(seq_len=4, d_model=4), 0.01, 1))
    again = load(str(tmp_path / "new"))
    assert again.optimizer.t == 0
    assert not again.optimizer.moments["m"]["wte"].any()


def damaged(prefix, which, change):
    path = parts(prefix)[which]
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CheckpointError) as caught:
        load(str(prefix))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_truncated_anywhere(saved):
    _, prefix = saved
    path = parts(prefix)[1]
    whole = path.read_bytes()
    for size in [0, 7, 8, 20, HEADER, HEADER + 4, HEADER + 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"is damaged: it ends at byte|does not begin with BGPTCKPT"):
            load(str(prefix))


def overwrite(content, place, piece):
    return content[:place] + piece + content[place + len(piece) :]


@pytest.mark.parametrize(
    ("place", "piece", "words"),
    [
        (0, b"GGUF", "does not begin with BGPTCKPT"),
        (8, b"\x02", "version 2"),
        (12, b"\x00", "has_optim_state 0 and 1"),
        (16, b"\x09", "step 9 and 3"),
        (24, b"\xff\xff\xff\xff", "arrays 4294967295 and 20"),
        (28, b"\x01", "wte has 3073 numbers"),
        (36, b"\xff\xff\xff\x7f", "wte holds NaN"),
        (-4, b"\x00\x00\x80\xbf", "v of lm_head.b is negative"),
    ],
)
def test_altered_binary(saved, place, piece, words):
    place = place % len(parts(saved[1])[1].read_bytes())
    assert words in damaged(saved[1], 1, lambda c: overwrite(c, place, piece))


def test_a_forged_number_of_blocks_builds_nothing(saved):
    _, prefix = saved
    settings = parts(prefix)[0]
    settings.write_bytes(settings.read_bytes().replace(b'"n_layers": 2', b'"n_layers": 100000'))
    n_arrays = struct.pack("<I", 4 + 8 * 100000)
    assert "n_layers is 100000, but can be at most 1024" in damaged(prefix, 1, lambda c: overwrite(c, 24, n_arrays))


def test_bytes_after_the_end(saved):
    assert "it has 122,215 bytes, but by its .json at most 122,212" in damaged(saved[1], 1, lambda c: c + b"abc")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: b"\x00\xff", "not valid JSON"),
        (lambda c: b"[1]", "not a checkpoint of the original program"),
        (lambda c: c.replace(b"build-llm", b"other"), "not a checkpoint of the original program"),
        (lambda c: c.replace(b'"version": 1', b'"version": 2'), "version 2"),
        (lambda c: c.replace(b'"d_model": 12', b'"d_model": "12"'), "d_model is '12'"),
        (lambda c: c.replace(b'"d_model": 12', b'"d_model": 16'), "wte has 3072 numbers, but the .json says 4096"),
        (lambda c: c.replace(b'"d_model": 12', b'"d_model": 0'), "d_model"),
        (
            lambda c: c.replace(b'"n_layers": 2', b'"n_layers": 2000000000000'),
            "n_layers is 2000000000000, but can be at most",
        ),
        (lambda c: c.replace(b'"n_layers": 2', b'"n_layers": true'), "n_layers is True"),
        (lambda c: c.replace(b'"step": 3', b'"step": 4'), "step 3 and 4"),
        (lambda c: c.replace(b'"step": 3', b'"stop": 3'), "step is None"),
        (lambda c: c.replace(b'"eps": ', b'"eps": 1e999, "x": '), "1e999 is too large"),
        (lambda c: c.replace(b'"lr": ', b'"lr": -'), "lr is -"),
    ],
)
def test_altered_settings(saved, change, words):
    assert words in damaged(saved[1], 0, change)


@pytest.mark.parametrize("which", [0, 1])
def test_missing_half(saved, which):
    parts(saved[1])[which].unlink()
    with pytest.raises(CheckpointError, match="cannot read"):
        load(str(saved[1]))


def test_a_failed_save_leaves_the_old_files(saved, monkeypatch):
    checkpoint, prefix = saved
    before = [path.read_bytes() for path in parts(prefix)]

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("byhand.interop.seed_program.checkpoint.os.fsync", full)
    checkpoint.step = 99
    with pytest.raises(CheckpointError, match="No space left"):
        save(str(prefix), checkpoint)
    assert [path.read_bytes() for path in parts(prefix)] == before
    assert sorted(prefix.parent.iterdir()) == sorted(parts(prefix))


def test_only_the_seeds_model_is_saved(tmp_path):
    two_heads = TinyGPT(ModelConfig(d_model=8, n_heads=2))
    with pytest.raises(ConfigError, match="n_heads is 2"):
        save(str(tmp_path / "x"), SeedCheckpoint(two_heads, AdamW(), 0))
    with pytest.raises(CheckpointError, match="float64"):
        save(str(tmp_path / "x"), SeedCheckpoint(TinyGPT(ModelConfig(d_model=8), dtype="float64"), AdamW(), 0))
    assert list(tmp_path.iterdir()) == []


def test_prepare_makes_the_folder_or_says_why_not(tmp_path):
    prepare(str(tmp_path / "new" / "a"))
    assert (tmp_path / "new").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot make the folder"):
        prepare(str(tmp_path / "file" / "a"))
    with pytest.raises(CheckpointError, match="PREFIX"):
        prepare(str(tmp_path / ".."))


@pytest.mark.parametrize("name", ["notes.json", "notes.bin"])
def test_a_file_of_somebody_else_is_not_replaced(tmp_path, name):
    """--save notes names no file; what it would replace must be a checkpoint."""
    for content in (b"mine", b"", b'{"name": "mine"}'):
        (tmp_path / name).write_bytes(content)
        for attempt in (lambda: prepare(str(tmp_path / "notes")), lambda: save(str(tmp_path / "notes"), small())):
            with pytest.raises(CheckpointError, match=f"{name} exists and is not a checkpoint"):
                attempt()
        assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [(name, content)]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_are_replaced_and_not_followed(saved, tmp_path):
    checkpoint, prefix = saved
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    for part in parts(prefix):
        part.with_name(f"{part.name}.writing").symlink_to(precious)
    save(str(prefix), checkpoint)
    assert precious.read_bytes() == b"precious"
    assert load(str(prefix)).step == 3
