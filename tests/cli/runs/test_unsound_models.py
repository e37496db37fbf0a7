"""A run whose weights are finite but too large: every command that computes with them says so in one line."""

import numpy as np
import pytest

from byhand.cli.learn import explain
from byhand.cli.main import main
from byhand.config import ModelConfig, TrainConfig
from byhand.corpus.dataset import ByteDataset
from byhand.runs import checkpoint
from byhand.runs.trainer import Trainer
from cli.inside import byhand
from cli.process import error_line, write_text
from needs import needs_loops

RUNTIMES = ["numpy", "auto", pytest.param("loops", marks=needs_loops)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`sound` and `unsound`, two runs of the same shape, and a text."""
    root = tmp_path_factory.mktemp("runs")
    config = TrainConfig(model=ModelConfig(seq_len=16, d_model=16), steps=1, batch_size=2, eval_windows=2)
    text = ByteDataset(write_text(root / "notes.txt").read_bytes())
    trainer = Trainer(config, *text.split(0.1, 16))
    trainer.update()
    trainer.save(root / "sound")
    made = trainer.checkpoint()
    arrays = dict(made.parameters)
    arrays["lm_head.w"] = np.where(np.arange(256) % 2, -3e38, 3e38).astype(np.float32) * np.ones((16, 1), np.float32)
    made.parameters = arrays
    checkpoint.save(root / "unsound", made)
    return root


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("more", [[], ["--temperature", "0"], ["--top-k", "3", "--json"], ["--weights", "bfloat16"]])
def test_sample(folder, runtime, more):
    done = byhand("sample", "unsound", "--prompt", "a", "--runtime", runtime, *more, cwd=folder)
    assert "logits are not finite" in error_line(done)
    assert b"Warning" not in done.stderr
    sound = byhand("sample", "sound", "--max-new-tokens", 5, "--runtime", runtime, *more, cwd=folder)
    assert sound.returncode == 0, sound.stderr


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_eval(folder, runtime):
    done = byhand("eval", "unsound", "--data", "notes.txt", "--runtime", runtime, "--json", cwd=folder)
    assert "the loss on" in error_line(done)
    assert done.stdout == b""
    sound = byhand("eval", "sound", "--data", "notes.txt", "--runtime", runtime, cwd=folder)
    assert sound.returncode == 0, sound.stderr


@pytest.mark.parametrize(
    "what", ["logits[0,0,0]", "loss", "lm_head.w[1,2] --grad", "lm_head.w.update[1,2]", "x[0,0,0]"]
)
def test_explain(folder, what):
    done = byhand("explain", "unsound", *what.split(), "--prompt", "abc", cwd=folder)
    assert "logits is not finite" in error_line(done)
    assert b"Warning" not in done.stderr


@needs_loops
def test_loops_without_a_cache_are_refused_and_auto_says_that_it_takes_numpy(folder):
    few = ["sample", "sound", "--max-new-tokens", "3", "--no-cache"]
    assert "KV cache" in error_line(byhand(*few, "--runtime", "loops", cwd=folder))
    done = byhand(*few, cwd=folder)
    assert done.returncode == 0
    assert done.stderr.startswith(b"runtime numpy: the loops runtime generates with a KV cache")
    plain = byhand(*few, "--runtime", "numpy", cwd=folder)
    assert (plain.stdout, plain.stderr) == (done.stdout, b"")


def test_a_value_is_explained_where_only_its_gradient_is_unsound(folder, monkeypatch, capsys):
    """An overflowing gradient does not make a sound value an error."""
    monkeypatch.setattr(explain, "non_finite_gradient", lambda steps: "the gradient of x")
    assert main(["explain", str(folder / "sound"), "x[0,0,0]", "--prompt", "abc"]) == 0
    assert main(["explain", str(folder / "sound"), "x[0,0,0]", "--prompt", "abc", "--grad"]) == 2
    assert "the gradient of x is not finite" in capsys.readouterr().err
