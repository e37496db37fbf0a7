"""A run that is made longer or shorter: its schedule is that of the new number of steps."""

import pytest

from byhand.runs import checkpoint, metrics
from byhand.schedule import learning_rate
from cli import inside
from cli.process import error_line

SMALL = ("--preset", "tiny", "--seq-len", 8, "--d-model", 8, "--eval-windows", 4, "--threads", 1, "--warmup-steps", 2)


@pytest.fixture
def run(tmp_path):
    """A complete run of 6 steps."""
    (tmp_path / "text").write_text("to and fro, to and fro. " * 40)
    done = inside.byhand("train", *SMALL, "--data", "text", "--steps", 6, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b" nats per byte = " in done.stdout
    assert b" bits per byte" in done.stdout
    return tmp_path / "run"


def rates(run):
    return [row["lr"] for row in metrics.read(run)]


def test_a_complete_run_is_extended_and_says_how_the_learning_rate_goes_on(run):
    done = inside.byhand("train", "--resume", "run", "--steps", 10, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    config = checkpoint.load(run).config
    assert (config.steps, checkpoint.load(run).step) == (10, 10)
    expected = [learning_rate(config.optim, i, 6 if i < 6 else 10) for i in range(10)]
    assert rates(run) == pytest.approx(expected)
    said = (
        f"learning rate rises from {expected[5]:.3g} back to {expected[6]:.3g}: the cosine schedule is now 10 steps"
    )
    assert said in done.stderr.decode()
    assert b"is complete: 10 of 10 steps" in inside.byhand("train", "--resume", "run", cwd=run.parent).stdout


def test_a_run_may_end_earlier_but_not_before_what_it_has_made(run):
    assert inside.byhand("train", "--resume", "run", "--steps", 9, "--threads", 1, cwd=run.parent).returncode == 0
    line = error_line(inside.byhand("train", "--resume", "run", "--steps", 8, cwd=run.parent))
    assert "run has made 9 steps already, so it cannot end at 8. Use more." in line
    assert b"is complete" in inside.byhand("train", "--resume", "run", "--steps", 9, cwd=run.parent).stdout
    line = error_line(inside.byhand("train", "--resume", "run", "--lr", 0.1, cwd=run.parent))
    assert "--lr cannot change a run that is resumed" in line
