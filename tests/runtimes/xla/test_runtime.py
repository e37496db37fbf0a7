"""The runtime among the others: what it refuses, when auto takes it, and the commands."""

import json
import shutil
from dataclasses import replace

import jax
import pytest

from byhand.config import ModelConfig, TrainConfig
from byhand.errors import ConfigError
from byhand.model import TinyGPT
from byhand.runs.run import on_this_machine
from byhand.runtimes.protocol import Request
from byhand.runtimes.provenance import difference, resumed
from byhand.runtimes.registry import begin, choose
from byhand.runtimes.xla import compiling, runtime
from byhand.runtimes.xla.mesh import mesh_of
from cli import inside
from cli.process import TINY, byhand, error_line, write_text

TRAIN = Request("train", ModelConfig())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"dtype": "float64"}, "does not compute in float64"),
        ({"threads": 2}, "--threads 2 is not for the xla runtime"),
        ({"blas": "scipy"}, "--blas scipy is not for the xla runtime"),
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
        with pytest.raises(ConfigError, match=r'needs jax\. Use pip install "byhand\[xla\]"'):
            choose(replace(TRAIN, **asked))


@pytest.mark.parametrize("other", ["loops", "numpy"])
def test_the_others_say_that_a_mesh_is_not_theirs(other):
    with pytest.raises(ConfigError, match="--mesh, --hosts and --recompute are for the xla runtime"):
        choose(replace(TRAIN, runtime=other, mesh="data=2"))


def test_a_machine_where_jax_cannot_begin_computes_without_it_and_says_why_if_asked(monkeypatch):
    """JAX asserts where JAX_PLATFORMS names a kind of device that is missing, and the assertion says nothing."""

    def missing() -> None:
        raise AssertionError

    monkeypatch.setattr("jax.devices", missing)
    monkeypatch.setattr(runtime, "_plugins", lambda: ["cuda"])
    assert choose(TRAIN).runtime.name != "xla"
    line = "JAX finds no device (AssertionError). Unset JAX_PLATFORMS, or use --runtime numpy."
    assert runtime.XlaRuntime().facts() == {"xla devices": line}
    model = TinyGPT(ModelConfig(vocab_size=8, seq_len=4, d_model=4, n_layers=1, n_heads=1))
    request = replace(TRAIN, model=model.config, runtime="xla")
    with pytest.raises(ConfigError, match="JAX finds no device") as error:
        begin(request, lambda chosen: chosen.session(model, None, request))
    assert str(error.value) == line


def test_more_devices_than_a_processor_can_stand_for_are_not_begun():
    before = jax.config.jax_num_cpu_devices
    compiling.prepare(99_999)
    assert jax.config.jax_num_cpu_devices == before
    with pytest.raises(ConfigError, match=r"has 99999 devices, but \d+ \(cpu\) can be used"):
        _ = mesh_of("data=99999").grid


@pytest.mark.parametrize("asked", [{"runtime": "xla"}, {"mesh": "data=2"}, {"runtime": "numpy"}], ids=str)
def test_threads_of_another_runtime_do_not_stay_where_xla_goes_on(monkeypatch, asked):
    monkeypatch.setattr("byhand.runtimes.provenance.cores", lambda: 4)
    request = resumed(replace(TRAIN, **asked), {"runtime": "loops", "threads": 2, "blas": "tiles"})
    assert request.threads == 0
    assert choose(request).runtime.name == asked.get("runtime", "xla")


def test_a_changed_mesh_is_said():
    used = {"runtime": "xla", "mesh": "data=2", "device": "cpu"}
    said = difference(used, {**used, "mesh": "data=4"})
    assert said.startswith("so far xla on cpu (data=2) computed this run, now xla on cpu (data=4) goes on")


def test_a_resumed_run_may_change_its_mesh_and_another_runtime_drops_it():
    """A machine may have fewer devices, or no JAX."""
    config = TrainConfig(mesh="data=8", recompute="blocks")
    assert on_this_machine(config, {}) == config
    assert on_this_machine(config, {"mesh": "data=2"}) == replace(config, mesh="data=2")
    assert on_this_machine(config, {"runtime": "xla"}) == replace(config, runtime="xla")
    assert on_this_machine(config, {"runtime": "numpy"}) == TrainConfig(runtime="numpy")
    asked = {"runtime": "numpy", "mesh": "data=2"}  # given together, they are refused when the run begins
    assert on_this_machine(config, asked) == replace(config, **asked)


def test_a_run_through_the_commands(tmp_path):
    """Trained on a mesh, gone on with by another runtime, sampled and evaluated by both."""
    write_text(tmp_path / "text.txt")
    flags = ["--runtime", "xla", "--mesh", "data=2", "--recompute", "cheap", "--data", "text.txt", "--out", "run"]
    done = byhand("train", *TINY, *flags, "--keep", "9", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert "xla" in done.stderr.decode() + done.stdout.decode()
    used = json.loads((tmp_path / "run/step-00000004/trainer_state.json").read_text())["used"]
    assert (used["runtime"], used["mesh"], used["device"]) == ("xla", "data=2", "cpu")
    shutil.rmtree(tmp_path / "run/step-00000006")
    done = inside.byhand("train", "--resume", "run", "--runtime", "numpy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert b"so far xla on cpu (data=2) computed this run, now numpy goes on" in done.stderr
    texts = [
        inside.byhand("sample", "run", "--runtime", name, "--max-new-tokens", "30", cwd=tmp_path)
        for name in ("xla", "numpy")
    ]
    assert texts[0].returncode == 0, texts[0].stderr.decode()
    assert texts[0].stdout == texts[1].stdout
    said = error_line(inside.byhand("train", *TINY, *flags[:-1], "b", "--mesh", "data=2,x=1", cwd=tmp_path))
    assert "mesh is 'data=2,x=1'" in said
