"""A checkpoint of two steps, written before layers owned their parameters: `fixtures/older-checkpoint`."""

import shutil
import subprocess
from pathlib import Path

import pytest

import byhand as bh
from byhand.model import parameter_shapes
from byhand.runs.checkpoint import load, save
from byhand.runs.contents import CONFIG, OPTIMIZER

OLDER = Path(__file__).resolve().parents[1] / "fixtures" / "older-checkpoint"


@pytest.mark.skipif(not (OLDER.parents[2] / ".git").exists() or not shutil.which("git"), reason="no checkout of git")
def test_git_leaves_its_bytes_alone():
    """A checkout with autocrlf would change line ends, and so SHA-256s."""
    files = [str(p) for p in OLDER.rglob("*") if p.is_file()]
    command = ["git", "-c", "safe.directory=*", "check-attr", "text", "--", *files]  # another user's checkout, too
    said = subprocess.run(command, cwd=OLDER, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == len(files) == 5
    assert all(line.endswith(": text: unset") for line in said), said


def test_it_loads_and_is_written_again_to_the_byte(tmp_path):
    run = Path(shutil.copytree(OLDER, tmp_path / "run"))
    found = load(run)
    assert found.config.model == bh.ModelConfig(
        vocab_size=7, seq_len=5, d_model=4, n_layers=2, n_heads=2, d_ff=3, norm_affine=True, activation="relu"
    )
    assert {name: a.shape for name, a in found.parameters.items()} == parameter_shapes(found.config.model)
    assert found.model().forward_logits([[1, 2, 3]]).shape == (1, 3, 7)
    again = save(tmp_path / "again", found)
    for name in (CONFIG, "model.safetensors", OPTIMIZER):
        assert (again / name).read_bytes() == (OLDER / again.name / name).read_bytes(), name
