"""The text changes while training reads it: one line, the last step saved, and it goes on once restored."""

import os
import sys
from pathlib import Path

import pytest

from byhand.runs import checkpoint, metrics
from cli.inside import byhand
from cli.process import TINY, error_line, weights, write_text

SETTINGS = [*TINY, "--runtime", "numpy", "--steps", "8", "--save-interval", "0", "--eval-interval", "0"]


def replaced(path: Path) -> None:
    """Put another file of the same content in its place."""
    (path.parent / "new").write_bytes(path.read_bytes())
    (path.parent / "new").replace(path)


def altered(path: Path) -> None:
    path.write_bytes(path.read_bytes().swapcase())
    os.utime(path, ns=(1, 1))


CHANGES = {
    "cut": lambda path: os.truncate(path, 100),
    "emptied": lambda path: os.truncate(path, 0),
    "grown": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "altered": altered,
    "replaced": replaced,
    "deleted": lambda path: path.unlink(),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    write_text(folder / "text")
    done = byhand("train", *SETTINGS, "--data", "text", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return weights(folder / "run", 8)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps files that are open")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("step", [1, 5])
def test_a_text_that_changes_ends_the_run_with_the_last_step_saved(tmp_path, monkeypatch, expected, change, step):
    text = write_text(tmp_path / "text")
    content = text.read_bytes()
    append = metrics.append

    def append_and_change(run, progress):
        append(run, progress)
        if progress.step == step:
            CHANGES[change](text)

    monkeypatch.setattr(metrics, "append", append_and_change)
    line = error_line(byhand("train", *SETTINGS, "--data", "text", "--out", "run", cwd=tmp_path))
    monkeypatch.undo()
    assert line.startswith("error: text ")
    assert ("is gone" if change == "deleted" else "changed") in line
    assert line.endswith(f"Saved at step {step}.")
    assert checkpoint.load(tmp_path / "run").step == step
    if change != "replaced":  # with the same content, so the run can resume
        line = error_line(byhand("train", "--resume", "run", cwd=tmp_path))
        assert "text" in line
    text.write_bytes(content)
    done = byhand("train", "--resume", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "run", 8) == expected
    assert [row["step"] for row in metrics.read(tmp_path / "run")] == list(range(1, 9))


def test_a_text_that_changes_before_the_first_step_leaves_nothing_to_resume(tmp_path, monkeypatch):
    text = write_text(tmp_path / "text")
    monkeypatch.setattr("byhand.cli.runs.training._say_what_begins", lambda *_: os.truncate(text, 100))
    line = error_line(byhand("train", *SETTINGS, "--data", "text", "--out", "run", cwd=tmp_path))
    assert "it had 4,000 bytes and has 100 now" in line
    monkeypatch.undo()
    write_text(text)
    assert byhand("train", *SETTINGS, "--data", "text", "--out", "run", cwd=tmp_path).returncode == 0


def test_eval_of_a_text_that_changes_is_one_line(tmp_path, monkeypatch):
    text = write_text(tmp_path / "text")
    assert byhand("train", *SETTINGS, "--data", "text", "--out", "run", cwd=tmp_path).returncode == 0
    import byhand.cli.runs.eval as command

    evaluate = command.evaluate

    def cut_and_evaluate(*arguments, **settings):
        os.truncate(text, 100)
        return evaluate(*arguments, **settings)

    monkeypatch.setattr(command, "evaluate", cut_and_evaluate)
    assert "changed while it was in use" in error_line(byhand("eval", "run", "--data", "text", cwd=tmp_path))
