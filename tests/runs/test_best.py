"""`--keep-best`: the checkpoint with the lowest validation loss stays, whatever else is removed."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from byhand.files.run_folder import name_of
from byhand.runs import checkpoint, hosts
from byhand.runs.run import resume
from cli import inside

# A model that memorises so short a text: its validation loss falls, then rises.
OVERFITS = ["--d-model", 16, "--n-heads", 2, "--n-layers", 1, "--seq-len", 8, "--batch-size", 16, "--lr", 0.03]
OVERFITS += ["--warmup-steps", 0, "--steps", 120, "--eval-interval", 10, "--eval-windows", 8, "--save-interval", 30]
OVERFITS += ["--keep", 1, "--runtime", "numpy", "--keep-best"]


def train(folder, *arguments):
    done = inside.byhand("train", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def write(folder):
    """Random letters: none predicts the next."""
    (folder / "text.txt").write_bytes(bytes(np.random.default_rng(0).integers(97, 105, 500).tolist()))


def rows(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def overfitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("best")
    write(folder)
    said = train(folder, *OVERFITS, "--data", "text.txt", "--out", "run")
    return folder, said


def best_of(run):
    return min((row for row in rows(run) if "val/loss" in row), key=lambda row: row["val/loss"])


def test_it_stays_and_has_the_lowest_loss(overfitted):
    folder, said = overfitted
    best = best_of(folder / "run")
    assert 10 <= best["step"] <= 110, "else the best one is the newest"
    assert sorted(path.name for path in (folder / "run").glob("step-*")) == [name_of(best["step"]), name_of(120)]
    assert f"the lowest validation loss was {best['val/loss']:.4f}, at step {best['step']}" in said
    facts = json.loads(inside.byhand("info", "run", "--json", cwd=folder).stdout)
    assert facts["best"] == name_of(best["step"])
    assert checkpoint.load(folder / "run" / facts["best"]).best == (best["step"], best["val/loss"])


def test_a_run_that_stopped_knows_it(overfitted, tmp_path):
    """Resumed from the best one, after the newest was lost: the same checkpoints in the end."""
    folder, _ = overfitted
    run = shutil.copytree(folder / "run", tmp_path / "run")
    shutil.rmtree(run / name_of(120))
    train(tmp_path, "--resume", "run", "--data", folder / "text.txt")
    assert {p.name for p in run.glob("step-*")} == {p.name for p in (folder / "run").glob("step-*")}
    assert checkpoint.load(run).state["best"] == checkpoint.load(folder / "run").state["best"]
    train(tmp_path, "--resume", "run", "--data", folder / "text.txt", "--steps", 160)
    assert name_of(best_of(run)["step"]) in {p.name for p in run.glob("step-*")}


def test_without_it_the_newest_alone_stays(tmp_path):
    write(tmp_path)
    said = train(tmp_path, *OVERFITS[:-1], "--data", "text.txt", "--out", "run")
    assert [path.name for path in (tmp_path / "run").glob("step-*")] == [name_of(120)]
    assert "lowest" not in said
    assert checkpoint.load(tmp_path / "run").best is None


def test_hosts_that_go_on_with_a_run_know_it(overfitted, monkeypatch):
    """Else the next save of several hosts would remove it."""
    folder, _ = overfitted
    monkeypatch.setattr(hosts, "SharedTrainer", lambda group, config, train, val, start, record: record)
    group = SimpleNamespace(agree=lambda settings: None, first=lambda do: do())
    with resume(folder / "run", {"data": str(folder / "text.txt"), "steps": 160}) as run:
        shared = hosts.SharedRun(
            run.folder, run.config, run.text, run.place, run.start, run.tokenizer, run.planned, group=group
        )
        record = shared.trainer()
    assert record["best"]["step"] == best_of(folder / "run")["step"]
    assert record["planned"] == [[120, 120]]
