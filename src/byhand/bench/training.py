"""The training step, timed: ours in each runtime, and the peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from byhand.bench.contest import by_turns, milliseconds, repeats_for, require_known
from byhand.bench.shapes import Shape
from byhand.bench.torch_peer import torch_step
from byhand.config import TrainConfig
from byhand.formats.names import Dtype
from byhand.host import keep_pages
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.runtimes.protocol import Runtime, TrainingSession, to_train
from byhand.runtimes.registry import Choice, begin

PEERS = ("torch", "torch-eager", "torch-compile", "torch-bf16", "numpy", "float32", "scipy")


def our_step(
    shape: Shape, runtime: str, threads: int = 0, blas: str = "auto", dtype: Dtype = "float32"
) -> tuple[Callable[[], float], Choice]:
    """Return a function that makes a training step on a fixed random batch and returns the loss, and its runtime."""
    config = TrainConfig(model=shape.model(), runtime=runtime, threads=threads, dtype=dtype)
    request = replace(to_train(config), blas=blas)
    model = TinyGPT(config.model, 1, config.array_dtype)
    optimizer = AdamW(lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1, decay="matrices")

    def ready(chosen: Runtime) -> TrainingSession:
        session = chosen.session(model, optimizer, request)
        session.prepare([(shape.batch, shape.seq_len)], [])
        return session

    session, choice = begin(request, ready)
    batch = shape.random_batch()
    return lambda: session.step([batch], 1.0).loss, choice


def peer_steps(shape: Shape, peers: Sequence[str], threads: int = 0) -> dict[str, Callable[[], float]]:
    """Return the peers' steps by name; `torch` stands for eager and compile, of which the faster counts.

    `numpy` is our own reference, `float32` our own loops in that type, `scipy` ours with SciPy's BLAS.
    """
    require_known(peers, PEERS)
    makers: dict[str, Callable[[], Callable[[], float]]] = {
        "torch-eager": lambda: torch_step(shape, compiled=False),
        "torch-compile": lambda: torch_step(shape, compiled=True),
        "torch-bf16": lambda: torch_step(shape, compiled=False, dtype="bfloat16"),
        "numpy": lambda: our_step(shape, "numpy")[0],
        "float32": lambda: our_step(shape, "loops", threads)[0],
        "scipy": lambda: our_step(shape, "loops", threads, "scipy")[0],
    }
    names = [n for p in peers for n in (("torch-eager", "torch-compile") if p == "torch" else (p,))]
    return {name: makers[name]() for name in dict.fromkeys(names)}


def measure(
    shape: Shape,
    runtime: str = "auto",
    threads: int = 0,
    blas: str = "auto",
    steps: int | None = None,
    dtype: Dtype = "float32",
    peers: Sequence[str] = (),
) -> dict[str, Any]:
    """Return times of our step, and of each peer with its ratio (peer's median / ours).

    steps  timed steps of each; by default as many as the slowest makes in ten seconds
    """
    keep_pages()
    ours, choice = our_step(shape, runtime, threads, blas, dtype)
    runs = {"ours": ours, **peer_steps(shape, peers, threads)}
    rounds = 5
    repeats = max(1, steps // rounds) if steps else min(repeats_for(run, 10 / rounds) for run in runs.values())
    seconds = by_turns(runs, repeats, rounds)
    figures: dict[str, Any] = milliseconds(seconds["ours"])
    median = figures["ms_median"]
    figures |= {
        "tokens_per_s": 1e3 * shape.tokens / median,
        "gflops": shape.flops / median / 1e6,
        "loss": ours(),
        "runtime": choice.runtime.name,
        "why": choice.why,
        "dtype": dtype,
    }
    if peers:
        timed = {name: milliseconds(seconds[name]) for name in runs if name != "ours"}
        figures["peers"] = {name: times | {"ratio": times["ms_median"] / median} for name, times in timed.items()}
        figures["ratio"] = min(p["ratio"] for p in figures["peers"].values())
    return figures
