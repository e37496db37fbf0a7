"""`byhand plan`: a training step, or a token, as a list of timed kernel calls."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from byhand.bench.shapes import OFFERED, Blas, Shape, require_threads, shape_of
from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.runs.cost import show_stored
from byhand.cli.terminal.picture import require_drawing, save
from byhand.cli.terminal.say import show, show_json
from byhand.config import OptimConfig
from byhand.engine.equation import with_role
from byhand.errors import ConfigError
from byhand.formats.names import Multiplied, Weights
from byhand.model import TinyGPT, declared
from byhand.optim import Optimizer
from byhand.runtimes.protocol import Line, Listing, Request
from byhand.runtimes.registry import choose

MOST_STEPS, MOST_STREAMS = 10**6, 1 << 16


@dataclass(frozen=True)
class Options:
    """Show what a run costs: memory, the time of a training step and of a token. Without a run, list and time every
    kernel call of a training step's first share, or of generation's first thread."""

    run: Positional[Path | None] = None
    """A run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2, planned as a run of
    --init-from."""
    of: Literal["train", "decode", "prefill"] = "train"
    """train: a training step. decode: one token in the middle of the window. prefill: the cache of a whole window."""
    shape: str = "nano"
    """tiny, nano, small, or B,T,C[/F],L,H[/K],V (generation does not use B)."""
    architecture: Literal[OFFERED] = "plain"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """plain: the model's default settings; or the architecture of a preset."""
    steps: int = 20
    """Timed steps; the least time of each call counts. 0 shows the plan without running it."""
    threads: int = 0
    """Shares of the batch, or threads in generation; 0: all cores."""
    blas: Blas = "auto"
    """Matrix products: register tiles or a library; auto takes the fastest."""
    dtype: Multiplied = "float32"
    """Type of the inputs of linear layers in training."""
    activation: Literal[with_role("activation")] | None = None  # pyright: ignore[reportInvalidTypeForm]  (late)
    """Non-linearity of the MLP; the architecture's if not given."""
    optimizer: Literal[with_role("update")] = "adamw"  # pyright: ignore[reportInvalidTypeForm]  (late)
    """How training updates parameters."""
    streams: int = 1
    """Texts generated in parallel."""
    weights: Weights = "float32"
    """Format of the weights in generation, also with a run."""
    every_call: Switch = False
    """One line per call, in execution order, instead of one per kind."""
    json: Switch = False
    """Print one JSON object."""
    plot: Path | None = None
    """Draw the times as a bar chart into this PNG or SVG (needs matplotlib)."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand plan")
    options = given.over()
    if options.run:
        given.refuse({*given.values} - {"run", "weights"}, "with a run")
        show_stored(options.run, options.weights)
        return 0
    of_the_other = {"weights", "streams"} if options.of == "train" else {"dtype", "optimizer", "blas"}
    given.refuse(of_the_other, f"with --of {options.of}")
    if not 0 <= options.steps <= MOST_STEPS:
        raise ConfigError(f"steps is {options.steps}, but must be from 0 to {MOST_STEPS:,}. Use --steps 20.")
    if options.plot and not options.steps:
        raise ConfigError("--plot draws times, so it needs --steps 1 or more.")
    require_threads(options.threads)
    if options.plot:
        require_drawing(options.plot, "plan.png")
    shape = shape_of(options.shape, options.architecture)
    plan = _listed(options, shape)
    table = plan.calls if options.every_call else plan.kinds
    if options.json:
        facts = {"of": options.of, "shape": options.shape, "shares": plan.threads, "arena_bytes": plan.arena_bytes,
                 "peak_gflops": plan.peak, "read_gb_per_s": plan.read, "ms_in_a_row": plan.row}  # fmt: skip
        show_json(facts | {"calls": [asdict(line) for line in table]})
    else:
        _print(table, options.shape, plan)
    if options.plot:
        _draw(table, options.plot, f"{plan.what}, {options.shape}")
    return 0


def _listed(options: Options, shape: Shape) -> Listing:
    if options.of != "train" and (not 1 <= options.streams <= MOST_STREAMS or shape.seq_len < 2):
        raise ConfigError(f"a plan of generation needs --streams from 1 to {MOST_STREAMS:,}, and T above 1.")
    config = shape.model()
    config = replace(config, activation=options.activation or config.activation)
    request = Request(
        "train" if options.of == "train" else "generate", config, dtype=options.dtype, threads=options.threads,
        blas=options.blas, weights=options.weights, streams=options.streams, listed=True,
    )  # fmt: skip
    runtime, model = choose(request).runtime, TinyGPT(request.model)
    optimizer = Optimizer(OptimConfig(optimizer=options.optimizer), declared(request.model))
    return runtime.listing(options.of, model, optimizer, request, (shape.batch, shape.seq_len), options.steps)


def _print(table: list[Line], shape: str, plan: Listing) -> None:
    show(f"{plan.what}, {shape}: {plan.threads} side by side, {len(plan.calls)} calls in each; "
         f"arena {plan.arena_bytes / 1e6:.1f} MB; {plan.library}")  # fmt: skip
    if plan.ms is not None and plan.peak is not None:
        row = f"; {plan.row:.3f} ms a token of several in a row" if plan.row else ""
        read = f", and it reads {plan.read:.1f} GB/s of memory" if plan.read else ""
        show(f"{plan.ms.sum():.3f} ms for the first of them{row}; "
             f"one core's measured peak is {plan.peak:.0f} GFLOP/s{read}")  # fmt: skip
    w = max(18, *(2 + len(x.kernel) for x in table))
    show(f"{'kernel':<{w}}{'equation':<18}{'shapes':<28}{'calls':>6}{'MFLOP':>10}{'MB':>9}", end="")
    reads = f"{'read':>6}" if plan.read else ""
    show(f"{'ms':>10}{'GFLOP/s':>9}{'GB/s':>7}{'step':>7}{'peak':>6}{reads}" if plan.ms is not None else "")
    for x in table:
        show(f"{x.kernel:<{w}}{x.equation:<18}{x.shapes:<28}{x.calls:>6}{x.flops / 1e6:>10.2f}{x.bytes / 1e6:>9.2f}",
              end="")  # fmt: skip
        timed = x.ms is not None and x.gflops is not None and x.gb_per_s is not None and x.share is not None
        show(f"{x.ms:>10.4f}{x.gflops:>9.1f}{x.gb_per_s:>7.1f}{x.share:>7.1%}{x.peak_share or 0:>6.0%}" if timed
              else "", end="")  # fmt: skip
        show("" if x.read_share is None else f"{x.read_share:>6.0%}")


def _draw(table: list[Line], path: Path, title: str) -> None:
    """Draw one bar per line, the longest on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.3 * len(table) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    top_first = table[::-1]
    axes.barh(range(len(top_first)), [line.ms or 0.0 for line in top_first])
    axes.set_yticks(range(len(top_first)), [f"{x.kernel} {x.shapes}" for x in top_first], fontsize=7)
    axes.set_xlabel("ms of one thread")
    axes.set_title(title)
    save(figure, path)
