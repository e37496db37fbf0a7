"""What people typed and handed in, and what it found. `test_fuzz.py` attacks by seed."""

import contextlib

import pytest

from byhand.cli.main import main
from byhand.cli.runs import prompts
from hostile import flags
from hostile.outcome import command


@pytest.mark.parametrize(
    "argv",
    [
        ["sample", "run", "--prompt", "\ud800"],
        ["sample", "run", "--prompt", "-"],
        ["explain", "run", "loss", "--prompt", "\ud800x"],
        ["eval", "run", "--data", "\ud800"],
        ["grade", "\ud800"],
        ["train", "--config", "\ud800"],
        ["worksheet", "--topic", "adamw", "--out", "\ud800"],
        ["worksheet", "--topic", "adamw", "--seed", "9" * 400],
        ["plot", "run", "--png", "\ud800.png"],
        ["train", "--data", "text.txt", "--out", "a\0b"],
        ["train", "--out", "made", *["x" * 9000] * 30],
        ["info", "run", "--r" + "x" * 90],
    ],
    ids=ascii,
)
def test_findings(argv, tmp_path, monkeypatch):
    flags.prepare(tmp_path)
    monkeypatch.setattr(prompts, "LONGEST", 100)
    with contextlib.chdir(tmp_path), flags.nothing_lasts():
        assert command(main, argv, b"x" * 101) == 2
