"""`byhand bench scale`: the growth of a step's cost with batch, layers and window, as a table and a picture."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from byhand.bench import scaling
from byhand.bench.scaling import Curve
from byhand.bench.shapes import Blas, require_threads
from byhand.cli.arguments.settings import Switch
from byhand.cli.terminal.picture import require_drawing, save
from byhand.cli.terminal.say import show, show_json
from byhand.config import ModelConfig
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose

AXES = {"batch": "batch B", "n_layers": "layers L", "seq_len": "window T"}
GRAY = "#797979"  # equal contrast on white and on a dark page
LOOK: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "byhand", "font.family": "sans-serif", "font.size": 10.0,
    "text.color": GRAY, "axes.labelcolor": GRAY, "axes.edgecolor": GRAY, "xtick.color": GRAY, "ytick.color": GRAY,
    "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip
COLOURS = ("#2f81c4", "#d4691e")


@dataclass(frozen=True)
class Options:
    """Time steps of growing batch, layers and window by turns, and fit how their cost grows."""

    threads: int = 0
    """Threads; 0: all cores. Batches are multiples of their number."""
    blas: Blas = "auto"
    """Matrix products: register tiles or a library; auto takes the fastest."""
    json: Switch = False
    """Print one JSON object."""
    plot: Path | None = None
    """Draw the curves into this PNG or SVG (needs matplotlib)."""


def run(options: Options) -> int:
    """Run the subcommand."""
    require_threads(options.threads)
    choose(Request("train", ModelConfig(), listed=True))  # ConfigError if no runtime has a plan
    if options.plot:
        require_drawing(options.plot, "scale.svg")
    curves = scaling.measure(options.threads, options.blas)
    if options.json:
        show_json({"curves": [asdict(curve) for curve in curves]})
    else:
        show("\n\n".join(_table(axis, [c for c in curves if c.axis == axis]) for axis in AXES))
    if options.plot:
        draw(curves, options.plot)
    return 0


def _table(axis: str, curves: list[Curve]) -> str:
    sizes = "".join(f"{size:>9,}" for size in curves[0].sizes)
    lines = [f"{AXES[axis]:<18}{sizes}{'exponent':>10}{'of operations':>15}"]
    for c in curves:
        costs = "".join(f"{cost:>9.2f}" for cost in c.costs)
        lines.append(f"{f'{c.part}, {unit(c)}':<18}{costs}{_two(c.exponent):>10}{_two(c.operations_exponent):>15}")
    return "\n".join(lines)


def _two(exponent: float) -> str:
    return f"{round(exponent, 2) + 0.0:.2f}"  # never -0.00


def unit(curve: Curve) -> str:
    """Return the unit of the curve's costs."""
    return "us" if curve.part == "a token" else "ms"


def draw(curves: list[Curve], path: Path) -> None:
    """Draw one panel for each axis: a token's cost from 0, the layers on a line, the window with both logarithmic."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(10, 3.4), layout="constrained")
        for axes, axis in zip(figure.subplots(1, len(AXES)), AXES, strict=True):
            _panel(axes, axis, [c for c in curves if c.axis == axis])
        save(figure, path, transparent=True, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(axes: Any, axis: str, curves: list[Curve]) -> None:
    for curve, colour in zip(curves, COLOURS, strict=False):
        label = (
            f"{curve.part}: {AXES[axis][-1]}^{_two(curve.exponent)} (operations {_two(curve.operations_exponent)})"
        )
        axes.plot(curve.sizes, curve.costs, marker="o", markersize=4, color=colour, label=label)
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
    axes.set_ylabel("µs a token" if unit(curves[0]) == "us" else "ms a step")
    axes.grid(color=GRAY, alpha=0.25)
    axes.legend(frameon=False, fontsize=8.5, loc="upper left")
