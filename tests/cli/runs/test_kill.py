"""SIGKILL at random moments never loses a checkpoint."""

import random
import subprocess
import sys
import time

import pytest

from byhand.runs import checkpoint, metrics
from cli import inside
from cli.process import PATIENCE, TINY, environment, write_text

# The third save says that it is at one of its steps, and stays there until the process is killed.
SAVING = """
import sys, time
from pathlib import Path
from byhand.__main__ import main
from byhand.runs.checkpoint import Writing
def stopping(whole, calls=[]):
    def step(*given):
        calls.append(0)
        if len(calls) == 3:
            Path("here").touch()
            time.sleep(600)
        return whole(*given)
    return step
setattr(Writing, sys.argv[1], stopping(getattr(Writing, sys.argv.pop(1))))
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_killed_again_and_again(tmp_path, kills):
    """One run, saving after every step, killed again and again, resumed each time.

    After each kill the newest checkpoint verifies and is never older than one seen before.
    """
    text = write_text(tmp_path / "text.txt")
    settings = [*TINY, "--steps", "1000000", "--save-interval", "1", "--keep", "1", "--eval-interval", "0"]
    settings += ["--runtime", "numpy"]
    begin = ["train", *settings, "--data", str(text), "--out", "run"]
    go_on = ["train", "--resume", "run"]
    moments = random.Random(7)
    run, reached = tmp_path / "run", 0
    for kill in range(kills):
        arguments = go_on if any(run.glob("step-*")) else begin
        saving = [] if kill % 2 else [("write", "finish")[kill // 2 % 2]]
        process = subprocess.Popen(
            [sys.executable, *(["-c", SAVING, *saving] if saving else ["-m", "byhand"]), *arguments],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE
        here = tmp_path / "here"
        while not (here.exists() if saving else any(row["step"] > reached + 1 for row in metrics.read(run)[-1:])):
            assert process.poll() is None, "the run ended by itself"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        if not saving:  # the step before it is saved
            time.sleep(moments.random() * 0.1)
        process.kill()
        process.wait()
        here.unlink(missing_ok=True)
        assert not saving or any(run.glob(".writing-step-*"))
        if not any(run.glob("step-*")):
            assert not reached, "all checkpoints are gone"
            continue
        loaded = checkpoint.load(run)
        loaded.model()
        assert loaded.step >= reached
        reached = loaded.step
    assert reached >= kills
    final = inside.byhand("info", "run", cwd=tmp_path)
    assert final.returncode == 0
