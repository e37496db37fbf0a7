"""A run folder that is renamed or replaced while its run trains: nothing is written into the new one."""

import shutil
import sys
from pathlib import Path

import pytest

from byhand.errors import CheckpointError
from byhand.runs.lock import LOCK, locked
from byhand.runs.trainer import Trainer
from cli.inside import byhand
from cli.process import TINY, error_line, write_text
from cli.runs.test_out import contents

SETTINGS = [*TINY, "--runtime", "numpy", "--eval-interval", "0", "--save-interval", "1"]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a folder with an open file in place")


def another_run(folder: Path) -> None:
    done = byhand(
        "train", *SETTINGS, "--steps", "2", "--seed", "8", "--data", "text", "--out", folder, cwd=folder.parent
    )
    assert done.returncode == 0, done.stderr


def own_folder(folder: Path) -> None:
    (folder / ".writing-step-00000002").mkdir(parents=True)
    for name in ("latest", "metrics.jsonl", ".writing-step-00000002/model.safetensors"):
        (folder / name).write_bytes(b"mine")


def copy(folder: Path) -> None:
    shutil.copytree(folder.with_name("moved"), folder)


def nothing(folder: Path) -> None:
    pass


@pytest.mark.parametrize("data", ["text", "-"])
@pytest.mark.parametrize("put", [another_run, own_folder, copy, nothing])
def test_a_run_stops_where_its_folder_is_no_longer_its_own(tmp_path, monkeypatch, put, data):
    text, run, moved = write_text(tmp_path / "text"), tmp_path / "run", tmp_path / "moved"
    update = Trainer.update
    before = {}

    def update_then_move(trainer):
        done = update(trainer)
        if done.step == 2 and not moved.exists():
            run.rename(moved)
            put(run)
            before.update(contents(tmp_path))
        return done

    monkeypatch.setattr(Trainer, "update", update_then_move)
    arguments = [*SETTINGS, "--steps", "3", "--data", data, "--out", "run"]
    line = error_line(byhand("train", *arguments, cwd=tmp_path, stdin=text.read_bytes()))
    assert "run is no longer the folder that this run began in" in line
    assert contents(tmp_path) == before
    assert sorted(p.name for p in moved.glob("step-*")) == ["step-00000001"]
    monkeypatch.undo()
    assert byhand("train", "--resume", "moved", cwd=tmp_path).returncode == 0


def test_a_lock_that_was_removed_no_longer_keeps_others_out(tmp_path):
    with locked(tmp_path) as place:
        place.require_in_place()
        (tmp_path / LOCK).unlink()
        with pytest.raises(CheckpointError, match="no longer the folder"):
            place.require_in_place()
