"""Memory: the advised settings fit, and the estimate is what a process really takes."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand import memory
from byhand.config import ModelConfig, TrainConfig
from byhand.errors import ConfigError
from byhand.flops import step_flops
from byhand.memory import fitting, needed, require_memory, run_bytes
from byhand.runtimes.protocol import Request, to_train
from byhand.runtimes.registry import begin, runtimes
from cli.inside import byhand
from cli.process import error_line, write_text
from needs import needs_loops

MODEL = ModelConfig(vocab_size=64, seq_len=256, d_model=64, n_layers=2, n_heads=2)
CONFIG = TrainConfig(model=MODEL, batch_size=12, runtime="numpy")


def need(config):
    return run_bytes(config, to_train(config))


def have(monkeypatch, size):
    monkeypatch.setattr(memory, "physical", lambda: int(size / memory.OF_MEMORY) + 1)


@given(st.integers(1, 16), st.integers(1, 4), st.floats(0, 1))
def test_the_largest_micro_batch_that_fits(rows, accum, share):
    config = replace(CONFIG, batch_size=rows, grad_accum=accum)
    whole = rows * accum
    least, most = (need(replace(config, batch_size=n, grad_accum=whole // n)) for n in (1, whole))
    size = int(least + share * (most - least)) + 1
    with pytest.MonkeyPatch.context() as patch:
        have(patch, size)
        found = fitting(config, to_train(config))
    assert found.batch_size * found.grad_accum == whole
    assert need(found) <= size + 2
    larger = [n for n in range(found.batch_size + 1, whole + 1) if whole % n == 0]
    assert all(need(replace(config, batch_size=n, grad_accum=whole // n)) > size for n in larger)


@pytest.mark.parametrize("share", [0.999, 0.7, 0.5, 0.4])
def test_what_a_refusal_offers_fits(monkeypatch, share):
    loaded = runtimes()[-1].loaded
    have(monkeypatch, loaded + share * (need(CONFIG) - loaded))
    with pytest.raises(ConfigError, match="this run needs") as refused:
        require_memory(CONFIG, to_train(CONFIG))
    offered = dict(re.findall(r"--([a-z-]+) ([0-9]+)", str(refused.value)))
    assert offered, refused.value
    shorter = replace(MODEL, seq_len=int(offered.get("seq-len", MODEL.seq_len)))
    config = replace(
        CONFIG, model=shorter, batch_size=int(offered["batch-size"]), grad_accum=int(offered["grad-accum"])
    )
    require_memory(config, to_train(config))


def test_what_is_offered_for_tuning_is_a_window_and_takes_no_minutes(monkeypatch):
    config = replace(CONFIG, model=replace(MODEL, positions="rotary"), window=256)
    have(monkeypatch, 0.7 * need(config))
    with pytest.raises(ConfigError, match=r"What fits: --batch-size \d+ --grad-accum \d+\.$"):
        require_memory(config, to_train(config))
    monkeypatch.setattr(memory, "MINUTE", step_flops(MODEL, 12, 128) + 1)
    with pytest.raises(ConfigError, match=r"What fits: --window 128 --batch-size \d+ --grad-accum \d+\.$"):
        require_memory(config, to_train(config))


def test_what_fits_nowhere_is_said(monkeypatch):
    have(monkeypatch, 1e6)
    with pytest.raises(ConfigError, match=r"What fits: a smaller model\.$"):
        require_memory(CONFIG, to_train(CONFIG))


def test_a_container_has_its_limit(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "LIMITS", (limit,))
    of_all = memory.physical()
    for content, due in (("max\n", of_all), ("1048576\n", 1 << 20), (f"{1 << 63}\n", of_all)):
        limit.write_text(content)
        assert memory.physical() == due


def test_windows_says_its_memory(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(memory, "_windows", lambda: (64, 8 << 30, 2 << 30, 0, 0, 0, 0, 0))
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(memory, "LIMITS", ())
    assert memory.physical() == 8 << 30
    assert memory.room(runtimes()[0]) == 2 << 30


def test_no_other_runtime_is_tried_when_memory_runs_out():
    tried = []

    def full(runtime):
        tried.append(runtime.name)
        raise MemoryError

    with pytest.raises(MemoryError):
        begin(Request("train", MODEL), full)
    assert len(tried) == 1


def settings_of(run):
    return json.loads((run / "step-00000001" / "config.json").read_bytes())


SMALL = ("--seq-len", "256", "--d-model", "64", "--n-layers", "2", "--n-heads", "2", "--eval-windows", "1")


def test_batch_size_auto_divides_the_batch(tmp_path, monkeypatch):
    text, config = (
        write_text(tmp_path / "text", 8000),
        replace(CONFIG, model=replace(MODEL, vocab_size=256, seq_len=64)),
    )
    whole = need(replace(config, batch_size=8, grad_accum=1, eval_windows=1))
    loaded = runtimes()[-1].loaded
    have(monkeypatch, loaded + 0.7 * (whole - loaded))
    flags = ("--data", text, "--steps", "1", "--runtime", "numpy", *SMALL, "--seq-len", "64")
    line = error_line(byhand("train", *flags, "--batch-size", "8", "--out", "run", cwd=tmp_path))
    assert "What fits: --batch-size 4 --grad-accum 2." in line
    (tmp_path / "auto.toml").write_text('batch_size = "auto"\ngrad_accum = 1\n')
    ways = {
        "auto": ("--batch-size", "auto", "--grad-accum", "1"),
        "file": ("--config", "auto.toml"),
        "preset": ("--preset", "gpt2"),
    }
    for name, more in ways.items():
        done = byhand("train", *flags, *more, "--out", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = settings_of(tmp_path / name)
        assert found["batch_size"] * found["grad_accum"] == {"auto": 12, "file": 12, "preset": 8}[name]
        if name != "preset":
            assert b"batch: 4 windows fit into memory; 3 micro-batches make an update of 12" in done.stderr
    whole = byhand("train", *flags, "--batch-size", "12", "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 2


def test_batch_size_auto_is_for_new_runs(tmp_path):
    line = error_line(byhand("train", "--resume", "run", "--batch-size", "auto", cwd=tmp_path))
    assert "--batch-size auto is for a new run without --minutes" in line
    line = error_line(byhand("train", "--data", "x", "--batch-size", "many", cwd=tmp_path))
    assert "--batch-size many is not an integer" in line


def test_streams_that_do_not_fit_are_one_line(tmp_path, monkeypatch):
    text = write_text(tmp_path / "text", 4000)
    assert byhand("train", "--data", text, "--steps", "1", *SMALL, "--out", "run", cwd=tmp_path).returncode == 0
    have(monkeypatch, 100e6)
    flags = ("--samples", "64", "--streams", "64", "--max-new-tokens", "1", "--runtime", "numpy")
    line = error_line(byhand("sample", "run", *flags, cwd=tmp_path))
    assert "generation needs at least" in line
    assert line.endswith("Use fewer --streams, or a smaller model.")
    assert byhand("sample", "run", *flags, "--streams", "1", cwd=tmp_path).returncode == 0


def test_an_evaluation_that_does_not_fit_is_one_line(tmp_path, monkeypatch):
    text = write_text(tmp_path / "text", 4000)
    assert byhand("train", "--data", text, "--steps", "1", *SMALL, "--out", "run", cwd=tmp_path).returncode == 0
    request = Request("evaluate", replace(MODEL, vocab_size=256), "numpy")
    have(monkeypatch, needed(request, (16, 256)) - 1)
    line = error_line(byhand("eval", "run", "--data", text, "--runtime", "numpy", cwd=tmp_path))
    assert "evaluation needs at least" in line
    have(monkeypatch, needed(request, (16, 256)))
    assert byhand("eval", "run", "--data", text, "--runtime", "numpy", cwd=tmp_path).returncode == 0


@needs_loops
def test_weights_of_fewer_bits_need_less_where_they_are_packed():
    def of(runtime, weights):
        return needed(Request("generate", MODEL, runtime, weights=weights))

    assert of("numpy", "bfloat16") == of("numpy", "float32")
    parameters = memory.parameter_counts(MODEL)[0]
    assert of("loops", "float32") - of("loops", "bfloat16") == 2 * parameters


PEAK = """
import atexit, runpy, sys
from pathlib import Path

path, *sys.argv[1:] = sys.argv[1:]
atexit.register(lambda: Path(path).write_text(Path("/proc/self/status").read_text()))
runpy.run_module("byhand", run_name="__main__")
"""


def peak_of(status, *arguments):
    """Run the command in a process; return its largest resident bytes; its `ru_maxrss` begins at its parent's."""
    subprocess.run([sys.executable, "-c", PEAK, status, *map(str, arguments)], stdout=subprocess.DEVNULL, check=True)
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1])


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
WITH = pytest.mark.parametrize("runtime", ["numpy", pytest.param("loops", marks=needs_loops)])


@pytest.mark.slow
@LINUX
@WITH
def test_the_estimates_of_evaluation_and_generation_are_what_a_process_takes(tmp_path, runtime):
    text = write_text(tmp_path / "text", 11000)
    model = ModelConfig(vocab_size=256, seq_len=1024, d_model=768, n_layers=12, n_heads=12)
    shape = ("--seq-len=1024", "--d-model=768", "--n-layers=12", "--n-heads=12")
    flags = ("--batch-size=1", "--steps=1", "--eval-windows=1", "--data", text, "--out", tmp_path / "run")
    peak_of(tmp_path / "status", "train", *shape, *flags, "--runtime=loops")
    given = tmp_path / "run", "--runtime", runtime
    request = Request("evaluate", model, runtime)
    assert needed(request, (4, 1024)) == pytest.approx(
        peak_of(tmp_path / "status", "eval", *given, "--data", text), rel=0.1
    )
    for weights in ("float32", "bfloat16") if runtime == "loops" else ("float32",):
        request = Request("generate", model, runtime, weights=weights)
        peak = peak_of(tmp_path / "status", "sample", *given, "--weights", weights, "--max-new-tokens", 4)
        assert peak < 1.1 * needed(request)
        if runtime == "loops":  # places of its cache that no token reaches take nothing; NumPy's grow
            assert peak > 0.8 * needed(request)


@pytest.mark.slow
@LINUX
@WITH
@pytest.mark.parametrize("shape", [(4, 256, 1), (2, 128, 2)])
def test_the_estimate_is_what_a_process_takes(tmp_path, runtime, shape):
    batch, length, accum = shape
    model = ModelConfig(vocab_size=256, seq_len=length, d_model=512, n_layers=12, n_heads=8)
    config = TrainConfig(model=model, batch_size=batch, grad_accum=accum, runtime=runtime, eval_windows=2)
    flags = [f"--{name}={value}" for name, value in {
        "seq-len": length, "d-model": 512, "n-layers": 12, "n-heads": 8, "batch-size": batch, "grad-accum": accum,
        "runtime": runtime, "eval-windows": 2, "steps": 2, "data": write_text(tmp_path / "text", 9000),
        "out": tmp_path / "run",
    }.items()]  # fmt: skip
    assert run_bytes(config, to_train(config)) == pytest.approx(
        peak_of(tmp_path / "status", "train", *flags), rel=0.1
    )
