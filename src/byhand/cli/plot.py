"""`byhand plot`: a run's loss in the terminal, and as PNG where matplotlib is installed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import tyro

from byhand import metrics
from byhand.cli.arguments import parse
from byhand.cli.text_plot import plot_to_string
from byhand.errors import ByhandError, CheckpointError

POINTS = 400  # more do not fit on a screen; each stands for the mean of its steps


@dataclass(frozen=True)
class Options:
    """Draw the training and validation loss of a run."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run folder."""
    png: Path | None = None
    """Where to write the PNG; RUN/loss.png if not given, and nowhere without matplotlib."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand plot")
    if not options.run.is_dir():
        raise CheckpointError(f"there is no run {options.run}. Check the path.")
    rows = metrics.read(options.run)
    if not rows:
        raise CheckpointError(f"{options.run} has no {metrics.METRICS} with a step in it yet. Train it first.")
    curves = {"train loss": _thin(rows, "train/loss"), "validation loss": _thin(rows, "val/loss")}
    curves = {name: points for name, points in curves.items() if points[0]}
    print(_terminal(curves, f"{options.run}: loss in nats per byte, by step"))
    if find_spec("matplotlib"):
        path = options.png or options.run / "loss.png"
        _write_png(curves, path, str(options.run))
        print(f"wrote {path}")
    elif options.png:
        raise ByhandError("--png needs matplotlib, which is not installed. Run: pip install matplotlib")
    return 0


def _thin(rows: list[dict[str, Any]], key: str) -> tuple[list[float], list[float]]:
    """Return steps and values of a key, averaged in groups so that no more than POINTS are left."""
    points = [(row["step"], row[key]) for row in rows if key in row]
    size = max(1, -(-len(points) // POINTS))
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [g[-1][0] for g in groups], [sum(v for _, v in g) / len(g) for g in groups]


def _terminal(curves: dict[str, tuple[list[float], list[float]]], title: str) -> str:
    width = max(40, min(100, shutil.get_terminal_size().columns - 12))
    xs, ys = [c[0] for c in curves.values()], [c[1] for c in curves.values()]
    return plot_to_string(
        ys=ys,
        xs=xs,
        lines=["train" in name for name in curves],  # evaluations are few: points, which stay apart without colour
        character_set="ascii",
        force_ascii_characters=["+", "o"],
        width=width,
        height=16,
        title=title,
        legend_labels=list(curves),
        color=False,
    )


def _write_png(curves: dict[str, tuple[list[float], list[float]]], path: Path, title: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, (steps, values) in curves.items():
        axes.plot(steps, values, label=name, marker="o" if len(steps) < 30 else None)
    axes.set(xlabel="step", ylabel="loss (nats per byte)", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    try:
        figure.savefig(path, dpi=150, format="png")
    except OSError as error:
        raise ByhandError(f"cannot write {path}: {error.strerror}. Choose another file with --png.") from None
