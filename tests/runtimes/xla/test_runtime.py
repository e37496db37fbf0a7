"""The runtime among the others: what it refuses, when auto takes it, and the commands."""

import json
from dataclasses import replace

import pytest

from byhand.config import ModelConfig
from byhand.errors import ConfigError
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose
from byhand.runtimes.xla import runtime
from cli.process import TINY, byhand, error_line, write_text

TRAIN = Request("train", ModelConfig())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"dtype": "float64"}, "float32 or bfloat16"),
        ({"threads": 2}, "--threads 2 is not for the xla runtime"),
        ({"blas": "mkl"}, "--blas mkl is not for the xla runtime"),
        ({"use": "generate", "cache": False}, "with causal models and a KV cache"),
        ({"listed": True}, "no plan to list"),
        ({"mesh": "data=x"}, "mesh is 'data=x'"),
    ],
)
def test_what_it_cannot_do_is_said_in_one_line(asked, why):
    with pytest.raises(ConfigError, match=why):
        choose(replace(TRAIN, runtime="xla", **asked))


def test_auto_takes_it_where_an_accelerator_is_found_and_for_a_mesh(monkeypatch):
    assert choose(TRAIN).runtime.name != "xla"
    assert choose(replace(TRAIN, mesh="data=2")).runtime.name == "xla"
    monkeypatch.setattr(runtime, "_plugins", lambda: ["cuda"])
    assert choose(TRAIN).runtime.name != "xla"
    monkeypatch.setattr(runtime, "_platform", lambda: "gpu")
    assert choose(TRAIN).runtime.name == "xla"


def test_without_jax_the_others_compute_and_a_mesh_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    assert choose(TRAIN).why == ""
    for asked in ({"mesh": "data=2"}, {"runtime": "xla"}):
        with pytest.raises(ConfigError, match=r"needs jax\. Use pip install 'byhand\[xla\]'"):
            choose(replace(TRAIN, **asked))


@pytest.mark.parametrize("other", ["loops", "numpy"])
def test_the_others_say_that_a_mesh_is_not_theirs(other):
    with pytest.raises(ConfigError, match="--mesh and --recompute are for the xla runtime"):
        choose(replace(TRAIN, runtime=other, mesh="data=2"))


def test_a_run_through_the_commands(tmp_path):
    """Trained on a mesh, gone on with by another runtime, sampled and evaluated by both."""
    write_text(tmp_path / "text.txt")
    flags = ["--runtime", "xla", "--mesh", "data=2", "--recompute", "cheap", "--data", "text.txt", "--out", "run"]
    done = byhand("train", *TINY, *flags, "--keep", "9", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert "xla" in done.stderr.decode() + done.stdout.decode()
    used = json.loads((tmp_path / "run/step-00000004/trainer_state.json").read_text())["used"]
    assert (used["runtime"], used["mesh"], used["device"]) == ("xla", "data=2", "cpu")
    texts = [
        byhand("sample", "run", "--runtime", name, "--max-new-tokens", "30", cwd=tmp_path)
        for name in ("xla", "numpy")
    ]
    assert texts[0].returncode == 0, texts[0].stderr.decode()
    assert texts[0].stdout == texts[1].stdout
    said = error_line(byhand("train", *TINY, *flags[:-1], "b", "--mesh", "data=2,x=1", cwd=tmp_path))
    assert "mesh is 'data=2,x=1'" in said
