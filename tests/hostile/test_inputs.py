"""What people type and hand in: attacks by seed over a fixed range. `dev.py fuzz` goes on with fresh ones."""

import contextlib

import pytest

from byhand.cli.main import main
from byhand.cli.runs import prompts
from hostile import flags, formulas, indices, toml_files, worksheets
from hostile.outcome import command


@pytest.mark.slow  # `test_fuzz.py` runs every attack with a few seeds
@pytest.mark.parametrize(
    ("attacked", "seeds"),
    [(flags, 60), (toml_files, 200), (worksheets, 160), (formulas, 40), (indices, 400)],
    ids=lambda value: value.__name__ if hasattr(value, "attack") else "",
)
def test_attacks_by_seed(tmp_path, attacked, seeds):
    for seed in range(seeds):
        attacked.attack(seed, tmp_path)


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
