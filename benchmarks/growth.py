"""How a training step's time and its operations grow with the batch, the layers and the window.

    python benchmarks/growth.py --plot docs/images/scale.svg    (23 s on 2 threads)

A sweep changes one number of a shape. All shapes are timed by turns in one run; parts of a step (attention, the
blocks) are sums over the plan's own calls. The exponent p of a curve is the least-squares slope of log cost over log
size: 0 is flat, 1 linear, 2 quadratic. The same fit of the operations that the plan counts gives the exponent to
expect at these sizes: causal attention takes 8 queries at a time and keys up to theirs, so it grows as T (T + 8).
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from byhand.bench.contest import by_turns
from byhand.bench.shapes import Shape
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.runtimes.cores import cores
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose

ROUNDS, REPEATS = 7, 3
GRAY = "#797979"  # equal contrast on white and on a dark page
LOOK: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "byhand", "font.family": "sans-serif", "font.size": 10.0,
    "text.color": GRAY, "axes.labelcolor": GRAY, "axes.edgecolor": GRAY, "xtick.color": GRAY, "ytick.color": GRAY,
    "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip
COLOURS = ("#2f81c4", "#d4691e")
AXES = {"batch": "batch B", "n_layers": "layers L", "seq_len": "window T"}
PARTS: dict[str, dict[str, Callable[[Any], bool]]] = {  # which of the plan's calls belong to a part
    "batch": {"a token": lambda call: True},
    "n_layers": {
        "the step": lambda call: True,
        "its blocks": lambda call: call.node is not None and call.node.name.startswith("blocks."),
    },
    "seq_len": {
        "attention": lambda call: call.kernel.startswith("attention"),
        "the rest": lambda call: not call.kernel.startswith("attention"),
    },
}
WHOLE = ("a token", "the step")  # timed as a step, not as a sum of its calls


@dataclass(frozen=True)
class Curve:
    """The cost of a part along a sweep, in ms (a token's in us), and the exponents of its time and its operations."""

    axis: str
    part: str
    sizes: tuple[int, ...]
    costs: tuple[float, ...]
    exponent: float
    operations_exponent: float


Sweeps = dict[str, tuple[Shape, tuple[int, ...]]]  # by axis: a shape, and the sizes that this field of it takes


def sweeps(threads: int) -> Sweeps:
    """Return the sweeps; batches are multiples of the threads, so that all have the same share."""
    rows = tuple(threads * n for n in (2, 4, 8, 16, 32))
    base = Shape(rows[0], 64, 128, 4, 4, 256)
    layers, windows = (1, 2, 4, 8), (64, 128, 256, 512, 1024)
    return {"batch": (base, rows), "n_layers": (replace(base, batch=6 * threads), layers), "seq_len": (base, windows)}


def measure(threads: int, blas: str, swept: Sweeps) -> list[Curve]:
    """Time all shapes of the sweeps by turns with the loops runtime; return a curve for each part."""
    along = {axis: [replace(base, **{axis: n}) for n in sizes] for axis, (base, sizes) in swept.items()}
    timed = {shape: TimedShape(shape, threads, blas) for shapes in along.values() for shape in shapes}
    steps = by_turns({str(shape): one.step for shape, one in timed.items()}, REPEATS, ROUNDS)
    for _ in range(ROUNDS):
        for one in timed.values():
            one.rounds.append(one.time_calls())
    curves = []
    for axis, shapes in along.items():
        for part, belongs in PARTS[axis].items():
            ms, operations = np.array([timed[shape].cost(belongs) for shape in shapes]).T
            if part in WHOLE:
                ms = np.array([1e3 * np.median(steps[str(shape)]) for shape in shapes])
            if part == "a token":
                tokens = np.array([shape.tokens for shape in shapes])
                ms, operations = 1e3 * ms / tokens, operations / tokens
            sizes = swept[axis][1]
            fits = exponent(sizes, ms), exponent(sizes, operations)
            curves.append(Curve(axis, part, sizes, tuple(ms.tolist()), *fits))
    return curves


def exponent(sizes: Sequence[float], costs: Any) -> float:
    """Return p of cost = c size^p by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


class TimedShape:
    """A shape's step, and the times of its calls, one row a round."""

    def __init__(self, shape: Shape, threads: int, blas: str) -> None:
        request = Request("train", shape.model(), threads=threads, blas=blas, listed=True)
        session: Any = choose(request).runtime.session(TinyGPT(request.model, seed=1), AdamW(), request)
        self.step: Callable[[], Any] = partial(session.step, [shape.random_batch()], 1.0)
        self._calls = session.plan("train", (shape.batch, shape.seq_len)).calls
        self.time_calls: Callable[[], np.ndarray] = partial(session.runner.time_calls, self.step, REPEATS)
        self.rounds: list[np.ndarray] = []

    def cost(self, belongs: Callable[[Any], bool]) -> tuple[float, float]:
        """Return the ms that the calls of a part take, median over the rounds, and their operations."""
        counts = np.array([belongs(call) for call in self._calls])
        operations = float(sum(call.flops for call in self._calls if belongs(call)))
        return float(np.median(np.array(self.rounds)[:, counts].sum(axis=1))), operations


def table(axis: str, curves: list[Curve]) -> str:
    """Return the costs of an axis's parts, and their exponents."""
    sizes = "".join(f"{size:>9,}" for size in curves[0].sizes)
    lines = [f"{AXES[axis]:<18}{sizes}{'exponent':>10}{'of operations':>15}"]
    for c in curves:
        costs = "".join(f"{cost:>9.2f}" for cost in c.costs)
        unit = "us" if c.part == "a token" else "ms"
        lines.append(f"{f'{c.part}, {unit}':<18}{costs}{two(c.exponent):>10}{two(c.operations_exponent):>15}")
    return "\n".join(lines)


def two(number: float) -> str:
    """Return a number with two decimals, never -0.00."""
    return f"{round(number, 2) + 0.0:.2f}"


def draw(curves: list[Curve], path: Path) -> None:
    """Draw one panel for each axis: a token's cost from 0, the layers on a line, the window with both logarithmic."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(10, 3.4), layout="constrained")
        for axes, axis in zip(figure.subplots(1, len(AXES)), AXES, strict=True):
            panel(axes, axis, [c for c in curves if c.axis == axis])
        figure.savefig(path, transparent=True, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def panel(axes: Any, axis: str, curves: list[Curve]) -> None:
    """Draw the curves of an axis."""
    for curve, colour in zip(curves, COLOURS, strict=False):
        fits = f"{AXES[axis][-1]}^{two(curve.exponent)} (operations {two(curve.operations_exponent)})"
        axes.plot(curve.sizes, curve.costs, marker="o", markersize=4, color=colour, label=f"{curve.part}: {fits}")
    if axis != "n_layers":
        axes.set_xscale("log", base=2)
    highest = max(max(c.costs) for c in curves)
    if axis == "seq_len":
        axes.set_yscale("log")
        axes.set_ylim(top=6 * highest)  # room for the legend
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(0, 1.3 * highest)
    axes.set_xticks(curves[0].sizes, [f"{size:,}" for size in curves[0].sizes])
    axes.minorticks_off()
    axes.set_xlabel(AXES[axis])
    axes.set_ylabel("µs a token" if axis == "batch" else "ms a step")
    axes.grid(color=GRAY, alpha=0.25)
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")


def main() -> None:
    """Measure, print the tables, draw."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--threads", type=int, default=cores(), help="batches are multiples of it (all cores)")
    flags.add_argument("--blas", default="auto", choices=("auto", "tiles", "scipy"), help="matrix products")
    flags.add_argument("--plot", type=Path, help="draw into this PNG or SVG (needs matplotlib)")
    given = flags.parse_args()
    curves = measure(given.threads, given.blas, sweeps(given.threads))
    print("\n\n".join(table(axis, [c for c in curves if c.axis == axis]) for axis in AXES))
    if given.plot:
        draw(curves, given.plot)


if __name__ == "__main__":
    main()
