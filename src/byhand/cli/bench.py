"""`byhand bench train`: how fast a training step is here, beside its peers in the same run."""

from __future__ import annotations

import json as jsonlib
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from byhand.bench import training
from byhand.bench.shapes import shape_of
from byhand.cli.arguments import parse
from byhand.errors import ConfigError


@dataclass(frozen=True)
class TrainOptions:
    """Time a training step: forward, backward, clipping and AdamW on a fixed random batch."""

    shape: str = "nano"
    """tiny, nano, small, or B,T,C,L,H,V."""
    runtime: Literal["auto", "loops", "numpy"] = "auto"
    """What computes ours."""
    threads: int = 0
    """Threads of the loops runtime; 0: all cores."""
    blas: Literal["auto", "mkl", "scipy"] = "auto"
    """Which BLAS the loops runtime calls; auto takes MKL where it is installed."""
    steps: int | None = None
    """Timed steps of each; as many as fit into ten seconds if not given."""
    peer: tuple[str, ...] = ()
    """torch (eager and compile), torch-eager, torch-compile, torch-bf16, numpy."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print one JSON object."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    if arguments[:1] in ([], ["-h"], ["--help"]):
        print("usage: byhand bench train [options]; `byhand bench train --help` lists them")
        return 0 if arguments else 2
    if arguments[0] != "train":
        raise ConfigError(f"there is no bench {arguments[0]!r}. Use byhand bench train.")
    return _train(parse(TrainOptions, arguments[1:], "byhand bench train"))


def _train(options: TrainOptions) -> int:
    if options.steps is not None and options.steps < 1:
        raise ConfigError(f"steps is {options.steps}, but must be at least 1. Use --steps 50.")
    shape = shape_of(options.shape)
    figures = training.measure(
        shape, options.runtime, options.threads, options.blas, options.steps, peers=options.peer
    )
    if options.json:
        print(jsonlib.dumps(figures))
        return 0
    print(
        f"{options.shape}, {figures['runtime']}: {figures['ms_median']:.3f} ms a step (least {figures['ms_min']:.3f})"
        f", {figures['tokens_per_s']:,.0f} tokens/s, {figures['gflops']:.1f} GFLOP/s"
    )
    for name, peer in figures.get("peers", {}).items():
        print(f"{name}: {peer['ms_median']:.3f} ms (least {peer['ms_min']:.3f}), {peer['ratio']:.2f} times ours")
    return 0
