"""`byhand plan`: a training step as the list of calls that it becomes, and where its time goes."""

from __future__ import annotations

import json as jsonlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import tyro

from byhand.bench.shapes import shape_of
from byhand.cli.arguments import parse
from byhand.config import TrainConfig
from byhand.errors import ConfigError
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.steps import resolved

if TYPE_CHECKING:
    from byhand.runtimes.loops.profile import Line


@dataclass(frozen=True)
class Options:
    """Show the plan of a training step: every kernel call of one share, with its time after a timed run."""

    shape: str = "nano"
    """tiny, nano, small, or B,T,C,L,H,V."""
    steps: int = 20
    """Timed steps, of which each call's least time counts; 0 shows the plan without running it."""
    threads: int = 0
    """Shares of the batch; 0: all cores."""
    blas: Literal["auto", "mkl", "scipy"] = "auto"
    """Which BLAS; auto takes MKL where it is installed."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of what linear layers multiply."""
    every_call: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """One line for each call in the order in which they run, instead of one for each kind."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print one JSON object."""
    plot: Path | None = None
    """Draw the times as bars into this PNG or SVG (needs matplotlib)."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand plan")
    if options.steps < 0 or (options.plot and not options.steps):
        raise ConfigError(
            "--plot draws times, so it needs --steps 1 or more." if options.plot else "steps is negative."
        )
    shape = shape_of(options.shape)
    config = resolved(TrainConfig(model=shape.model(), runtime="loops", threads=options.threads))
    from byhand.runtimes.loops import profile
    from byhand.runtimes.loops.training import LoopsRuntime

    runtime = LoopsRuntime(TinyGPT(config.model), AdamW(), config.threads, options.blas, options.dtype)
    plan = runtime.plan("train", (shape.batch, shape.seq_len))
    ms = peak = None
    if options.steps:
        rng = np.random.default_rng(0)
        batch = tuple(rng.integers(0, shape.vocab_size, (shape.batch, shape.seq_len)) for _ in range(2))
        ms = profile.time_calls(runtime, lambda: runtime.step([(batch[0], batch[1])], 1.0), options.steps)
        peak = profile.measured_peak(runtime)
    calls = profile.lines(plan, ms, peak)
    table = calls if options.every_call else profile.summed(calls)
    arena = runtime.arena.memory.nbytes
    if options.json:
        facts = {"shape": options.shape, "shares": len(plan.shares), "arena_bytes": arena, "peak_gflops": peak}
        print(jsonlib.dumps(facts | {"calls": [line.as_dict() for line in table]}))
    else:
        _print(table, f"{options.shape}: {len(plan.shares)} shares side by side, {len(calls)} calls in each; "
                      f"arena {arena / 1e6:.1f} MB; {runtime.blas.name}", ms, peak)  # fmt: skip
    if options.plot:
        _draw(table, options.plot, options.shape)
    return 0


def _print(table: list[Line], title: str, ms: np.ndarray | None, peak: float | None) -> None:
    print(title)
    if ms is not None and peak is not None:
        print(f"{ms.sum():.3f} ms for the first share; one core's measured peak is {peak:.0f} GFLOP/s")
    print(f"{'kernel':<18}{'equation':<18}{'shapes':<28}{'calls':>6}{'MFLOP':>10}{'MB':>9}", end="")
    print(f"{'ms':>10}{'GFLOP/s':>9}{'step':>7}{'peak':>6}" if ms is not None else "")
    for x in table:
        print(f"{x.kernel:<18}{x.equation:<18}{x.shapes:<28}{x.calls:>6}{x.flops / 1e6:>10.2f}{x.bytes / 1e6:>9.2f}",
              end="")  # fmt: skip
        timed = x.ms is not None and x.gflops is not None and x.share is not None
        print(f"{x.ms:>10.3f}{x.gflops:>9.1f}{x.share:>7.1%}{x.peak_share or 0:>6.0%}" if timed else "")


def _draw(table: list[Line], path: Path, shape: str) -> None:
    """Draw one bar for each line, the longest on top."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("--plot needs matplotlib. Use pip install 'byhand[plot]'.") from None
    if path.suffix not in (".png", ".svg"):
        raise ConfigError(f"--plot {path} is neither .png nor .svg. Use plan.png.")
    figure = Figure(figsize=(9, 0.3 * len(table) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    top_first = table[::-1]
    axes.barh(range(len(top_first)), [line.ms or 0.0 for line in top_first])
    axes.set_yticks(range(len(top_first)), [f"{x.kernel} {x.shapes}" for x in top_first], fontsize=7)
    axes.set_xlabel("ms of one share's step")
    axes.set_title(f"Training step, {shape}")
    try:
        figure.savefig(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}. Choose another path.") from None
