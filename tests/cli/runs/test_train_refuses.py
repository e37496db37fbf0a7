"""`byhand train` on wrong input and of models that diverge: one line, and nothing is saved."""

import os
import re

import pytest

from byhand.errors import command
from cli.inside import byhand
from cli.process import TINY, error_line

BAD = [
    (["--data", "missing.txt"], "there is no file or folder missing.txt"),
    (["--data", "empty.txt"], "empty.txt is empty"),
    (["--data", "short.txt"], "short.txt holds 1 byte, but seq_len 16 needs at least 17"),
    (["--data", "folder"], "holds no text"),
    (["--d-model", "30", "--n-heads", "4"], "--n-heads 4 does not divide --d-model 30. Use --n-heads 3 or 5"),
    (["--steps", "many"], "--steps many is not an integer. See byhand train --help"),
    (["--steps", "0"], "^error: --steps is 0, but must be at least 1. Use 1000.$"),
    (["--n-head", "3"], "^error: --n-heads 3 does not divide --d-model 16. Use --n-heads 2 or 4.$"),
    (["--lr", "-1"], "^error: --lr is -1"),
    (["--lr", "nan"], "^error: --lr is nan"),
    (["--min-lr", "1"], "^error: --min-lr 1.0 must lie between 0 and lr 0.003. Lower --min-lr.$"),
    (["--val-fraction", "1.5"], "^error: --val-fraction is 1.5"),
    (["--d-ff", "None"], "--d-ff None is not an integer"),
    (["--activation", "tanh"], "tanh"),
    (["--dtype", "float16"], "float16"),
    (["--vocab-size", "50"], "text.txt holds the byte 122, but vocab_size 50 has ids 0 to 49. Use --vocab-size 256"),
    (["--data", ""], "--data names no file"),
    (["--data", "fifo"], "is not a regular file.*name - in its place"),
    (["--lr"], "--lr needs a value"),
    (["--seed", "1.5"], "--seed 1.5 is not an integer"),
    (["--d-ff", "x"], "--d-ff x is not an integer"),
    (["--preset", ""], "there is no preset ''. Use one of tiny, nano, small, seed."),
    (["--config="], "--config names no folder or file"),
    (["--preset", "huge"], "there is no preset 'huge'. Use one of tiny"),
    (["--config", "missing.toml"], "cannot read --config missing.toml"),
    (["--config", "bad.toml"], r"--config bad.toml: it is not TOML: .*\. Write lines such as steps = 1000\."),
    (["--config", "unknown.toml"], "unknown key 'stepz'"),
    (["--config", "typed.toml"], "--config typed.toml: steps is 'many', but must be a whole number, such as 1000"),
    (["--stesp", "3"], "Perhaps you meant --steps"),
    (["--resume", "missing"], "there is no run missing"),
    (["--resume", "folder"], "holds no checkpoint"),
]


@pytest.mark.parametrize(("arguments", "expected"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_line(tmp_path, text, arguments, expected):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").touch()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "fifo")
    (tmp_path / "short.txt").write_bytes(b"0123456789")
    (tmp_path / "bad.toml").write_text("steps = = 3")
    (tmp_path / "unknown.toml").write_text("stepz = 3")
    (tmp_path / "typed.toml").write_text('steps = "many"')
    resuming = arguments[0] == "--resume"
    base = [] if resuming else [*TINY, "--out", "run"] + (["--data", text] if "--data" not in arguments else [])
    line = error_line(byhand("train", *base, *arguments, cwd=tmp_path))
    assert re.search(expected, line), line


def test_one_checkpoint_is_no_run_to_resume(tmp_path, text):
    assert byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path).returncode == 0
    line = error_line(byhand("train", "--resume", "run/step-00000004", cwd=tmp_path))
    assert line.endswith("is one checkpoint of a run. Use --resume run.")
    inside = error_line(byhand("train", "--resume", ".", cwd=tmp_path / "run" / "step-00000004"))
    assert inside.endswith(f"Use --resume {command(tmp_path / 'run')}.")
    (tmp_path / "run").rename(tmp_path / "my run")
    assert 'Use --resume "my run".' in error_line(byhand("train", "--resume", "my run/step-00000004", cwd=tmp_path))
    assert '`byhand train --resume "my run"` resumes it' in error_line(
        byhand("train", "--out", "my run", cwd=tmp_path)
    )


def test_sizes_beyond_memory_are_one_line(tmp_path, text):
    line = error_line(
        byhand("train", *TINY, "--d-model", 131072, "--n-heads", 1, "--data", text, "--out", "run", cwd=tmp_path)
    )
    assert "this run needs" in line


def test_weights_that_an_update_made_infinite_are_not_saved(tmp_path, text):
    wild = [*TINY, "--steps", "1", "--lr", "1e300", "--warmup-steps", "0"]
    line = error_line(byhand("train", *wild, "--data", text, "--out", "run", cwd=tmp_path))
    assert "is not finite; it was not saved" in line
    assert not list((tmp_path / "run").glob("step-*"))


@pytest.mark.parametrize("runtime", ["auto", "numpy"])
def test_weights_so_large_that_the_next_loss_overflows_are_not_saved(tmp_path, text, runtime):
    """They are finite, and the loss of the step that made them was finite too."""
    wild = [*TINY, "--lr", "1e30", "--grad-clip", "0", "--warmup-steps", "0", "--save-interval", "1", "--steps", "50"]
    done = byhand("train", *wild, "--data", text, "--out", "run", "--runtime", runtime, cwd=tmp_path)
    assert re.search(r"step 1: .* is not finite; it was not saved", error_line(done))
    assert b"Warning" not in done.stderr
    assert not list((tmp_path / "run").glob("step-*"))
