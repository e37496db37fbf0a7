"""SIGKILL at random moments never loses a checkpoint."""

import random
import subprocess
import sys
import time

import pytest

from byhand.runs import checkpoint, metrics
from cli import inside
from cli.process import PATIENCE, TINY, environment, write_text


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
    run, reached, inside_a_save = tmp_path / "run", 0, 0
    for kill in range(kills):
        arguments = go_on if any(run.glob("step-*")) else begin
        process = subprocess.Popen(
            [sys.executable, "-m", "byhand", *arguments],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE
        while not any(row["step"] > reached + 1 for row in metrics.read(run)[-1:]):  # the one before it is saved
            assert process.poll() is None, "the run ended by itself"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        if kill % 2:
            time.sleep(moments.random() * 0.1)
        else:  # whatever the share of its time that this machine takes to save
            while not any(run.glob(".writing-step-*")) and time.monotonic() < deadline:
                pass
        process.kill()
        process.wait()
        inside_a_save += any(run.glob(".writing-step-*"))
        if not any(run.glob("step-*")):
            assert not reached, "all checkpoints are gone"
            continue
        loaded = checkpoint.load(run)
        loaded.model()
        assert loaded.step >= reached
        reached = loaded.step
    assert reached >= kills
    assert inside_a_save > 0, "no kill hit a save: the test proved nothing"
    final = inside.byhand("info", "run", cwd=tmp_path)
    assert final.returncode == 0
