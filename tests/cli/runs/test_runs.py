"""The runs in a folder: a list of them, and several in one picture or one table."""

import csv
import json

import pytest

from byhand.files import run_folder
from byhand.runs import metrics
from cli import inside
from cli.process import error_line

SMALL = ("--preset", "tiny", "--seq-len", 8, "--d-model", 8, "--eval-windows", 4, "--threads", 1, "--data", "text")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs, one in a folder of runs whose other folders are none."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "text").write_text("to and fro, to and fro. " * 40)
    for name, steps in (("runs/a", 4), ("runs/b", 6)):
        done = inside.byhand("train", *SMALL, "--steps", steps, "--eval-interval", 2, "--out", name, cwd=folder)
        assert done.returncode == 0, done.stderr
    (folder / "runs" / "notes").mkdir()
    return folder


def test_runs_are_listed_with_their_last_validation(folder):
    done = inside.byhand("runs", cwd=folder)
    head, *lines = (line.split() for line in done.stdout.decode().splitlines())
    assert head == ["run", "parameters", "steps", "of", "val/loss", "val/bpb", "text"]
    for line, name, steps in zip(lines, ("a", "b"), (4, 6), strict=True):
        last = metrics.read(folder / "runs" / name)[-1]
        count = json.loads(inside.byhand("info", f"runs/{name}", "--json", cwd=folder).stdout)["parameters"]
        losses = [f"{last[key]:.4f}" for key in ("val/loss", "val/bpb")]
        assert line == [f"runs/{name}", f"{count:,}", str(steps), str(steps), *losses, "text"]
    found = json.loads(inside.byhand("runs", "runs", "--json", cwd=folder).stdout)
    assert [run["val/loss"] for run in found] == [metrics.read(folder / run["run"])[-1]["val/loss"] for run in found]


def test_a_damaged_run_has_a_line_of_its_own_and_hides_no_other(folder, tmp_path):
    (tmp_path / "b").symlink_to(folder / "runs" / "b")
    (tmp_path / "c" / "step-00000001").mkdir(parents=True)
    (tmp_path / "c" / run_folder.MARKER).write_bytes(run_folder.MARK)
    done = inside.byhand("runs", tmp_path)
    assert len(done.stdout.splitlines()) == 2
    assert b"step-00000001" in done.stderr
    assert b"has no run with a checkpoint" in inside.byhand("runs", tmp_path / "c").stderr
    assert "cannot list" in error_line(inside.byhand("runs", tmp_path / "none"))


def test_runs_are_compared_in_bits_per_byte_and_their_numbers_written(folder, tmp_path):
    done = inside.byhand(
        "plot", "runs/a", "runs/b", "--csv", tmp_path / "x.csv", "--png", tmp_path / "x.png", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode()
    assert "2 runs: validation in bits per byte, by step" in said
    assert "+ runs/a" in said
    assert "o runs/b" in said
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert not (folder / "runs" / "a" / "loss.png").exists()
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["run"], int(row["step"])) for row in rows] == [
        (name, step) for name, steps in (("runs/a", 4), ("runs/b", 6)) for step in range(1, steps + 1)
    ]
    known = metrics.read(folder / "runs" / "b")
    assert [float(row["train/loss"]) for row in rows[4:]] == [row["train/loss"] for row in known]
    assert [row["val/loss"] for row in rows[4:6]] == ["", repr(known[1]["val/loss"])]


def test_mistakes(folder):
    for arguments, said in (
        (["plot"], "byhand plot needs RUNS"),
        (["plot", "runs/a", "runs/none"], "runs/none"),
        (["plot", "runs/a", "--csv", "x.txt"], "does not end with .csv. Name a CSV file."),
        (["plot", "runs/a", "--csv", "none/x.csv"], "cannot write none/x.csv"),
    ):
        assert said in error_line(inside.byhand(*arguments, cwd=folder)), arguments
