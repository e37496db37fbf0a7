"""Checkpoints that several hosts save together: whole or absent, as those of one."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load as by_the_library
from safetensors.numpy import save as write

from byhand.config import ModelConfig, TrainConfig
from byhand.errors import ByhandError, CheckpointError
from byhand.files import sealed
from byhand.files.run_folder import MANIFEST, MODEL, is_checkpoint, is_run
from byhand.model import TinyGPT
from byhand.runs import checkpoint
from byhand.runs import hosts as hosts_of_a_run
from byhand.runs.contents import CONFIG, OPTIMIZER, STATE, Checkpoint, part_name
from thread_group import on_hosts

MODEL_CONFIG = ModelConfig(vocab_size=11, seq_len=8, d_model=4, n_heads=2)


def whole(step=1, seed=None):
    config = TrainConfig(model=MODEL_CONFIG)
    parameters = {n: p.data for n, p in TinyGPT(config.model, seed=seed or step).parameters().items()}
    moments = {n: np.full_like(p, step) for n, p in parameters.items()}
    return Checkpoint(
        config, parameters, {"m": moments, "v": {n: 2 * a for n, a in moments.items()}}, {"step": step, "text": {}}
    )


def part(saved, index, count):
    """What one of so many hosts holds: of most arrays some rows, of a few all or nothing."""

    def cut(arrays):
        found = {}
        for i, (name, array) in enumerate(arrays.items()):
            begin, end = (len(array) * k // count for k in (index, index + 1))
            if i % 3 == 0 and i % count == index:
                found[name] = array
            elif i % 3 and begin < end:
                box = [f"{begin}:{end}", *(f"0:{n}" for n in array.shape[1:])]
                found[f"{name}[{','.join(box)}]"] = array[begin:end]
        return found

    return replace(saved, parameters=cut(saved.parameters), moments={k: cut(a) for k, a in saved.moments.items()})


def save(run, saved, hosts=2, keep=2):
    """Save on so many hosts; return what each of them says, a path or an error."""
    return on_hosts(hosts, lambda group: hosts_of_a_run.save(run, part(saved, group.index, hosts), keep, group))


def saved_at(run, step=1, hosts=2, **more):
    saved = save(run, whole(step, **more), hosts)
    assert saved == [run / f"step-{step:08d}"] * hosts
    return saved[0]


def expect(loaded, saved):
    assert (loaded.config, loaded.state) == (saved.config, saved.state)
    for found, due in ((loaded.parameters, saved.parameters), *((loaded.moments[k], saved.moments[k]) for k in "mv")):
        assert list(found) == list(due)
        for name in due:
            np.testing.assert_array_equal(found[name], due[name], err_msg=name)
            assert found[name].dtype == due[name].dtype


def reseal(path, files=None):
    """Write the manifest anew, of these files or of all."""
    names = files or [p.name for p in path.iterdir() if p.name != MANIFEST]
    (path / MANIFEST).write_bytes(
        sealed.manifest(sealed.entries({name: (path / name).read_bytes() for name in names}))
    )


def expect_refused(run, what):
    """The newest checkpoint is refused in one line, and an older one is taken."""
    with pytest.raises(CheckpointError, match=what) as caught:
        checkpoint.load(run / "step-00000002")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
    assert checkpoint.load(run).step == 1
    assert checkpoint.newest_whole(run) == run / "step-00000001"


@pytest.mark.parametrize("hosts", [2, 3])
def test_what_several_hosts_saved_is_the_whole(tmp_path, hosts):
    path = saved_at(tmp_path, 7, hosts)
    parts = [part_name(kind, i, hosts) for kind in (MODEL, OPTIMIZER) for i in range(hosts)]
    assert {*os.listdir(path)} == {CONFIG, STATE, MANIFEST, *parts}
    assert part_name(MODEL, 1, hosts) == f"model-00002-of-0000{hosts}.safetensors"
    assert (tmp_path / "latest").read_text() == "step-00000007\n"
    expect(checkpoint.load(tmp_path), whole(7))
    assert is_checkpoint(path)
    assert is_run(tmp_path)
    alone = checkpoint.load(tmp_path, moments=False)
    assert alone.moments == {}
    expect(replace(alone, moments=whole(7).moments), whole(7))


@pytest.mark.parametrize("hosts", [2, 3])
def test_before_the_first_update_the_moments_are_in_no_part(tmp_path, hosts):
    save(tmp_path, replace(whole(), moments={}, state={"step": 0, "text": {}}), hosts)
    loaded = checkpoint.load(tmp_path)
    assert (loaded.step, loaded.moments) == (0, {})


def test_a_host_may_hold_nothing(tmp_path):
    saved, nothing = whole(), replace(whole(), parameters={}, moments={})
    on_hosts(2, lambda group: hosts_of_a_run.save(tmp_path, nothing if group.index else saved, 2, group))
    expect(checkpoint.load(tmp_path), saved)


def test_a_run_goes_on_with_another_number_of_hosts(tmp_path):
    for step, hosts in ((1, 2), (2, 3)):
        saved_at(tmp_path, step, hosts)
    checkpoint.save(tmp_path, whole(3))
    for step in (2, 3):
        expect(checkpoint.load(tmp_path / f"step-0000000{step}"), whole(step))
    assert sorted(p.name for p in tmp_path.glob("step-*")) == ["step-00000002", "step-00000003"]


PARTS = [part_name(kind, i, 2) for kind in (MODEL, OPTIMIZER) for i in range(2)]
FIRST, SECOND = PARTS[:2]


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_missing_is_told(tmp_path, name):
    saved_at(tmp_path, 1)
    (saved_at(tmp_path, 2) / name).unlink()
    expect_refused(tmp_path, f"is not whole: {name} is missing")


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("resealed", [False, True])
def test_a_part_that_is_cut_short_is_told(tmp_path, name, resealed):
    saved_at(tmp_path, 1)
    file = saved_at(tmp_path, 2) / name
    file.write_bytes(file.read_bytes()[:-4])
    if resealed:
        reseal(file.parent)
    expect_refused(tmp_path, r"has \d+ bytes, not|by config.json|do not end with the file")


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_altered_is_told(tmp_path, name):
    saved_at(tmp_path, 1)
    file = saved_at(tmp_path, 2) / name
    content = file.read_bytes()
    file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    expect_refused(tmp_path, f"{name} does not have the SHA-256")


@given(st.integers(0, 6), st.integers(0, 10**9), st.integers(1, 255))
def test_any_changed_byte_is_found(tmp_path_factory, which, where, change):
    path = saved_at(tmp_path_factory.mktemp("run"))
    file = path / [*PARTS, CONFIG, STATE, MANIFEST][which]
    content = bytearray(file.read_bytes())
    content[where % len(content)] ^= change
    file.write_bytes(content)
    assert checkpoint.defect(path)


def test_parts_that_changed_places_are_told(tmp_path):
    saved_at(tmp_path, 1)
    path = saved_at(tmp_path, 2)
    first, second = (path / FIRST).read_bytes(), (path / SECOND).read_bytes()
    (path / FIRST).write_bytes(second)
    (path / SECOND).write_bytes(first)
    expect_refused(tmp_path, "bytes, not|SHA-256")


@pytest.mark.parametrize(("mine", "other"), [(FIRST, SECOND), (SECOND, FIRST), (FIRST, PARTS[2])])
def test_a_part_in_place_of_another_is_told(tmp_path, mine, other):
    saved_at(tmp_path, 1)
    path = saved_at(tmp_path, 2)
    (path / mine).write_bytes((path / other).read_bytes())
    reseal(path)
    expect_refused(tmp_path, "is there twice|lacks a part|by config.json|does not know")


def test_a_part_of_another_run_is_told(tmp_path):
    saved_at(tmp_path / "run", 1)
    path, other = saved_at(tmp_path / "run", 2), saved_at(tmp_path / "other", 2, seed=5)
    (path / SECOND).write_bytes((other / SECOND).read_bytes())
    expect_refused(tmp_path / "run", f"{SECOND} does not have the SHA-256")


@pytest.mark.parametrize(
    ("hosts", "kind", "named"),
    [(2, MODEL, [0]), (2, MODEL, [1]), (3, MODEL, [0, 1]), (3, OPTIMIZER, [0, 2]), (3, OPTIMIZER, [])],
)
def test_a_manifest_that_names_not_all_parts_is_told(tmp_path, hosts, kind, named):
    saved_at(tmp_path, 1, hosts)
    path = saved_at(tmp_path, 2, hosts)
    left_out = {part_name(kind, i, hosts) for i in range(hosts)} - {part_name(kind, i, hosts) for i in named}
    reseal(path, sorted({*os.listdir(path)} - left_out - {MANIFEST}))
    expect_refused(tmp_path, f"does not name {kind}, or not all parts of it")


@pytest.mark.parametrize(
    "name",
    [
        "model-00003-of-00002.safetensors",
        "model-00000-of-00002.safetensors",
        "model-00001-of-00003.safetensors",
        MODEL,
        "optimizer-00003-of-00003.safetensors",
        OPTIMIZER,
    ],
)
def test_an_extra_part_is_told(tmp_path, name):
    saved_at(tmp_path, 1)
    path = saved_at(tmp_path, 2)
    (path / name).write_bytes(write({}))
    assert checkpoint.load(path).step == 2  # not in the manifest: not read
    reseal(path)
    expect_refused(tmp_path, "does not name|or not all parts of it")


def test_a_wrong_count_is_told(tmp_path):
    saved_at(tmp_path, 1)
    path = saved_at(tmp_path, 2)
    for i in range(2):
        (path / part_name(MODEL, i, 2)).rename(path / part_name(MODEL, i, 3))
    reseal(path)
    expect_refused(tmp_path, "does not name model.safetensors, or not all parts")
    (path / part_name(MODEL, 0, 3)).rename(path / "model-00001-of-00001.safetensors")
    (path / part_name(MODEL, 1, 3)).unlink()
    reseal(path)
    expect_refused(tmp_path, "does not name model.safetensors, or not all parts")


def test_a_name_that_no_version_writes_is_told(tmp_path):
    saved_at(tmp_path, 1)
    path = saved_at(tmp_path, 2)
    (path / SECOND).rename(path / "model-2-of-2.safetensors")
    reseal(path)
    with pytest.raises(CheckpointError, match=r"another version of byhand: it holds model-2-of-2\.safetensors"):
        checkpoint.load(tmp_path)


def forged(path, change):
    """Change the arrays of the second part, and write the manifest anew."""
    arrays = by_the_library((path / SECOND).read_bytes())
    change(arrays)
    (path / SECOND).write_bytes(write(arrays))
    reseal(path)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda arrays: next(iter(arrays.values())).fill(np.nan), "holds NaN or infinity"),
        (lambda arrays: arrays.update(wte=np.zeros((11, 4), np.float32)), "by config.json|is there twice"),
        (lambda arrays: arrays.update({"x[0:1]": np.zeros(1, np.float32)}), "which the model does not know"),
        (lambda arrays: arrays.update({"wte[0:9,0:9]": np.zeros((9, 9), np.float32)}), "no part of an array"),
        (lambda arrays: arrays.update({"wte[0:0,0:4]": np.zeros((0, 4), np.float32)}), "no part of an array"),
        (lambda arrays: arrays.pop(sorted(arrays)[-1]), "lacks a part of|by config.json"),
        (lambda arrays: arrays.update({k: a.astype(np.float64) for k, a in arrays.items()}), "but the config says"),
        (lambda arrays: arrays.update({k: a.reshape(-1) for k, a in arrays.items()}), "has shape"),
    ],
    ids=["nan", "twice", "unknown", "outside", "empty", "gap", "float64", "flat"],
)
def test_parts_with_right_hashes_and_wrong_arrays_are_told(tmp_path, change, what):
    saved_at(tmp_path, 1)
    forged(saved_at(tmp_path, 2), change)
    expect_refused(tmp_path, f"damaged: .*({what})")


def test_sizes_that_the_config_forbids_are_told_before_anything_is_read(tmp_path, monkeypatch):
    saved_at(tmp_path, 1)
    path = saved_at(tmp_path, 2)
    (path / SECOND).write_bytes(b"")
    with (path / SECOND).open("r+b") as file:
        file.truncate(1 << 40)  # sparse
    listed = json.loads((path / MANIFEST).read_bytes())["files"]
    listed[SECOND] = {"bytes": 1 << 40, "sha256": "0" * 64}
    (path / MANIFEST).write_bytes(sealed.manifest(listed))
    expect_refused(tmp_path, rf"damaged: {FIRST}, {SECOND} have 1,099,.* bytes, but by config.json")


def fail_to_write(monkeypatch, name, number=errno.ENOSPC):
    def create(path, content, create=checkpoint.write_new):
        if path.name == name:
            raise OSError(number, os.strerror(number), str(path))
        create(path, content)

    monkeypatch.setattr(checkpoint, "write_new", create)


@pytest.mark.parametrize("name", [*PARTS, MANIFEST, CONFIG])
@pytest.mark.parametrize("older", [True, False])
def test_a_full_disk_of_one_host_is_told_by_all_and_leaves_nothing(tmp_path, monkeypatch, name, older):
    if older:
        saved_at(tmp_path, 1)
    fail_to_write(monkeypatch, name)
    said = save(tmp_path, whole(2))
    guilty = int("00002-of" in name)
    rest = "step-00000001 is still whole" if older else "there is no older checkpoint"
    line = f"cannot write {tmp_path / 'step-00000002' / name}: No space left on device; {rest}. Free some space and "
    for index, error in enumerate(said):
        assert isinstance(error, CheckpointError if index == guilty else ByhandError)
        assert str(error).startswith(line if index == guilty else f"host {guilty}: {line}")
        assert str(error).isprintable()
    assert sorted(os.listdir(tmp_path)) == (["latest", "step-00000001"] if older else [])
    if older:
        expect(checkpoint.load(tmp_path), whole(1))
    monkeypatch.undo()
    saved_at(tmp_path, 2)
    expect(checkpoint.load(tmp_path), whole(2))


def test_both_disks_full_each_host_tells_its_own(tmp_path, monkeypatch):
    def create(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(checkpoint, "write_new", create)
    for index, error in enumerate(save(tmp_path, whole(2))):
        assert f"cannot write {tmp_path / 'step-00000002' / PARTS[index]}: No space" in str(error)
        assert not str(error).startswith("host")


def test_a_failure_before_anything_is_written_is_told_by_all(tmp_path):
    (tmp_path / "step-00000002").write_text("mine")
    said = save(tmp_path, whole(2), 3)
    assert "is in the way of a checkpoint" in str(said[0])
    assert [str(error) for error in said[1:]] == [f"host 0: {said[0]}"] * 2
    said = save(tmp_path, replace(whole(), state={"step": 1, "text": {"path": float("nan")}}))
    assert "the trainer's state cannot be stored" in str(said[0])
    assert str(said[1]) == f"host 0: {said[0]}"
    assert (tmp_path / "step-00000002").read_text() == "mine"


def test_the_same_step_is_saved_once_and_another_runs_is_refused(tmp_path):
    path = saved_at(tmp_path, 3)
    before = {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in path.iterdir()}
    saved_at(tmp_path, 3)
    assert {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in path.iterdir()} == before
    said = save(tmp_path, replace(whole(4), state=whole(3).state))
    assert all("step-00000003 is of another run" in str(error) for error in said)
    expect(checkpoint.load(tmp_path), whole(3))


def test_a_damaged_one_of_the_same_step_is_written_anew(tmp_path):
    (saved_at(tmp_path, 3, 3) / part_name(MODEL, 2, 3)).write_bytes(b"short")
    path = saved_at(tmp_path, 3, 2)
    expect(checkpoint.load(tmp_path), whole(3))
    assert not [name for name in os.listdir(path) if "of-00003" in name]


def test_older_ones_and_left_over_parts_go(tmp_path):
    for prefix in (checkpoint.TEMPORARY, ".removing-"):
        left = tmp_path / f"{prefix}step-00000001"
        left.mkdir()
        (left / part_name(OPTIMIZER, 6, 9)).write_bytes(b"half")
    for step in (1, 2, 3):
        saved_at(tmp_path, step)
    assert sorted(os.listdir(tmp_path)) == ["latest", "step-00000002", "step-00000003"]


@pytest.mark.parametrize(
    "name",
    ["notes", "model-1-of-2.safetensors", "model-00001-of-00002.safetensors.bak", "other-00001-of-00002.safetensors"],
)
def test_a_folder_with_a_file_of_its_owner_stays(tmp_path, name):
    mine: list[Path] = [saved_at(tmp_path, 1) / name]
    for folder in (".writing-step-00000009", ".removing-step-00000008"):
        (tmp_path / folder).mkdir()
        mine.append(tmp_path / folder / name)
    for path in mine:
        path.write_text("mine")
    for step in (2, 3, 4):
        saved_at(tmp_path, step)
    assert [path.read_text() for path in mine] == ["mine"] * 3
    expect(checkpoint.load(tmp_path / "step-00000001"), whole(1))
    assert not (tmp_path / "step-00000002").exists()


def test_one_that_was_verified_is_read_again_when_a_part_changed(tmp_path):
    path = saved_at(tmp_path)
    assert not checkpoint.defect(path)
    (path / SECOND).write_bytes(b"")
    assert f"{SECOND} has 0 bytes" in str(checkpoint.defect(path))
