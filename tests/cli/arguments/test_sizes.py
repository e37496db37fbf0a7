"""Sizes beyond all machines are one line at once, as flags and in a file, and build nothing."""

import tracemalloc

import pytest

from cli.inside import byhand
from cli.process import TINY, error_line, write_text
from hostile.outcome import soon

HUGE = [
    ("--n-layers", "20000"),
    ("--n-layers", "1000000000"),
    ("--d-model", "10000000000"),
    ("--d-model", "131072"),
    ("--d-ff", "10000000000"),
    ("--vocab-size", "1000000000000"),
    ("--vocab-size", "1048576", "--d-model", "65536"),
    ("--seq-len", "10000000000"),
    ("--batch-size", "1048576"),
    ("--batch-size", "1000000000000"),
    ("--grad-accum", "1000000000000"),
    ("--grad-accum", "1048576", "--batch-size", "65536"),
    ("--eval-windows", "1000000000000"),
    ("--eval-windows", "1048576", "--seq-len", "65536"),
    ("--steps", "1" + "0" * 30),
    ("--warmup-steps", "1" + "0" * 30),
    ("--seed", "1" + "0" * 30),
    ("--keep", "1" + "0" * 30),
    ("--save-interval", "1" + "0" * 30),
    ("--eval-interval", "1" + "0" * 30),
    ("--threads", "5000"),
    ("--n-heads", "1" + "0" * 30),
    ("--lr", "1" + "0" * 400),
]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Import everything: no size is to blame for that."""
    folder = tmp_path_factory.mktemp("sizes")
    byhand("train", *TINY, "--steps", "0", "--data", write_text(folder / "text"), cwd=folder)


@pytest.mark.parametrize("flags", HUGE, ids=" ".join)
def test_huge_sizes_are_one_line_at_once(tmp_path, monkeypatch, imported, flags):
    monkeypatch.setattr("byhand.memory.physical", lambda: 8 << 30)  # the same on every machine, and less than it has
    text = write_text(tmp_path / "text")
    if "--d-model" in flags:
        flags = (*flags, "--n-heads", "1")
    with soon(flags):
        tracemalloc.start()
        line = error_line(byhand("train", *TINY, "--data", text, "--out", "run", *flags, cwd=tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 50e6
        tracemalloc.stop()
    assert not (tmp_path / "run").exists()
    assert len(line) < 400


@pytest.mark.parametrize("digits", [12, 30, 4000])
def test_huge_sizes_in_toml(tmp_path, digits):
    text = write_text(tmp_path / "text")
    (tmp_path / "s.toml").write_text(f"d_model = {'9' * digits}\n")
    line = error_line(byhand("train", "--config", "s.toml", "--data", text, "--out", "run", cwd=tmp_path))
    assert len(line) < 200
    assert not (tmp_path / "run").exists()
