"""Checkpoints that several hosts save together: whole or absent, as those of one."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as by_the_library
from safetensors.numpy import save as write

from byhand.errors import CheckpointError
from byhand.files import sealed
from byhand.files.run_folder import MANIFEST, MODEL
from byhand.runs import checkpoint
from byhand.runs import hosts as hosts_of_a_run
from byhand.runs.contents import OPTIMIZER, part_name
from runs.saving import example, expect, expect_refused, parts_of, reseal, save
from runs.saving import saved_at as at_hosts
from thread_group import on_hosts


def at_two(run, step=1, hosts=2, **more):
    return at_hosts(run, step, hosts, **more)


def test_a_host_may_hold_nothing(tmp_path):
    saved, nothing = example(), replace(example(), parameters={}, moments={})
    on_hosts(2, lambda group: hosts_of_a_run.save(tmp_path, nothing if group.index else saved, 2, group))
    expect(checkpoint.load(tmp_path), saved)


def test_a_run_goes_on_with_another_number_of_hosts(tmp_path):
    for step, hosts in ((1, 2), (2, 3)):
        at_two(tmp_path, step, hosts)
    checkpoint.save(tmp_path, example(3))
    for step in (2, 3):
        expect(checkpoint.load(tmp_path / f"step-0000000{step}"), example(step))
    assert sorted(p.name for p in tmp_path.glob("step-*")) == ["step-00000002", "step-00000003"]


PARTS = parts_of(2)
FIRST, SECOND = PARTS[:2]


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_cut_short_under_a_new_manifest_is_told(tmp_path, name):
    at_two(tmp_path, 1)
    file = at_two(tmp_path, 2) / name
    file.write_bytes(file.read_bytes()[:-4])
    reseal(file.parent)
    expect_refused(tmp_path, r"has \d+ bytes, not|by config.json|do not end with the file")


def test_parts_that_changed_places_are_told(tmp_path):
    at_two(tmp_path, 1)
    path = at_two(tmp_path, 2)
    first, second = (path / FIRST).read_bytes(), (path / SECOND).read_bytes()
    (path / FIRST).write_bytes(second)
    (path / SECOND).write_bytes(first)
    expect_refused(tmp_path, "bytes, not|SHA-256")


@pytest.mark.parametrize(("mine", "other"), [(FIRST, SECOND), (SECOND, FIRST), (FIRST, PARTS[2])])
def test_a_part_in_place_of_another_is_told(tmp_path, mine, other):
    at_two(tmp_path, 1)
    path = at_two(tmp_path, 2)
    (path / mine).write_bytes((path / other).read_bytes())
    reseal(path)
    expect_refused(tmp_path, "is there twice|lacks a part|by config.json|does not know")


def test_a_part_of_another_run_is_told(tmp_path):
    at_two(tmp_path / "run", 1)
    path, other = at_two(tmp_path / "run", 2), at_two(tmp_path / "other", 2, seed=5)
    (path / SECOND).write_bytes((other / SECOND).read_bytes())
    expect_refused(tmp_path / "run", f"{SECOND} does not have the SHA-256")


@pytest.mark.parametrize(
    ("hosts", "kind", "named"),
    [(2, MODEL, [0]), (2, MODEL, [1]), (3, MODEL, [0, 1]), (3, OPTIMIZER, [0, 2]), (3, OPTIMIZER, [])],
)
def test_a_manifest_that_names_not_all_parts_is_told(tmp_path, hosts, kind, named):
    at_two(tmp_path, 1, hosts)
    path = at_two(tmp_path, 2, hosts)
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
    at_two(tmp_path, 1)
    path = at_two(tmp_path, 2)
    (path / name).write_bytes(write({}))
    assert checkpoint.load(path).step == 2  # not in the manifest: not read
    reseal(path)
    expect_refused(tmp_path, "does not name|or not all parts of it")


def test_a_wrong_count_is_told(tmp_path):
    at_two(tmp_path, 1)
    path = at_two(tmp_path, 2)
    for i in range(2):
        (path / part_name(MODEL, i, 2)).rename(path / part_name(MODEL, i, 3))
    reseal(path)
    expect_refused(tmp_path, "does not name model.safetensors, or not all parts")
    (path / part_name(MODEL, 0, 3)).rename(path / "model-00001-of-00001.safetensors")
    (path / part_name(MODEL, 1, 3)).unlink()
    reseal(path)
    expect_refused(tmp_path, "does not name model.safetensors, or not all parts")


def test_a_name_that_no_version_writes_is_told(tmp_path):
    at_two(tmp_path, 1)
    path = at_two(tmp_path, 2)
    (path / SECOND).rename(path / "model-2-of-2.safetensors")
    reseal(path)
    with pytest.raises(CheckpointError, match=r"another version of byhand: it holds model-2-of-2\.safetensors"):
        checkpoint.load(tmp_path)


def forged(path, change):
    """Change the arrays of the second part, and rewrite the manifest."""
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
    at_two(tmp_path, 1)
    forged(at_two(tmp_path, 2), change)
    expect_refused(tmp_path, f"damaged: .*({what})")


def test_sizes_that_the_config_forbids_are_told_before_anything_is_read(tmp_path, monkeypatch):
    at_two(tmp_path, 1)
    path = at_two(tmp_path, 2)
    (path / SECOND).write_bytes(b"")
    with (path / SECOND).open("r+b") as file:
        file.truncate(1 << 40)  # sparse
    listed = json.loads((path / MANIFEST).read_bytes())["files"]
    listed[SECOND] = {"bytes": 1 << 40, "sha256": "0" * 64}
    (path / MANIFEST).write_bytes(sealed.manifest(listed))
    expect_refused(tmp_path, rf"damaged: {FIRST}, {SECOND} have 1,099,.* bytes, but by config.json")


def test_both_disks_full_each_host_tells_its_own(tmp_path, monkeypatch):
    def create(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(checkpoint, "write_new", create)
    for index, error in enumerate(save(tmp_path, example(2), 2)):
        assert f"cannot write {tmp_path / 'step-00000002' / PARTS[index]}: No space" in str(error)
        assert not str(error).startswith("host")


@pytest.mark.parametrize(
    "name",
    ["notes", "model-1-of-2.safetensors", "model-00001-of-00002.safetensors.bak", "other-00001-of-00002.safetensors"],
)
def test_a_folder_with_a_file_of_its_owner_stays(tmp_path, name):
    mine: list[Path] = [at_two(tmp_path, 1) / name]
    for folder in (".writing-step-00000009", ".removing-step-00000008"):
        (tmp_path / folder).mkdir()
        mine.append(tmp_path / folder / name)
    for path in mine:
        path.write_text("mine")
    for step in (2, 3, 4):
        at_two(tmp_path, step)
    assert [path.read_text() for path in mine] == ["mine"] * 3
    expect(checkpoint.load(tmp_path / "step-00000001"), example(1))
    assert not (tmp_path / "step-00000002").exists()


def test_one_that_was_verified_is_read_again_when_a_part_changed(tmp_path):
    path = at_two(tmp_path)
    assert not checkpoint.defect(path)
    (path / SECOND).write_bytes(b"")
    assert f"{SECOND} has 0 bytes" in str(checkpoint.defect(path))
