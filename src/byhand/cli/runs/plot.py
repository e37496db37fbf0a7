"""`byhand plot`: a run's loss in the terminal, and as PNG if matplotlib is installed."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional
from byhand.cli.terminal.picture import is_free, save, title
from byhand.cli.terminal.say import say, show
from byhand.cli.terminal.shown import shown
from byhand.cli.terminal.text_plot import plot_to_string
from byhand.errors import ByhandError, CheckpointError, ConfigError
from byhand.files.run_folder import checkpoints, is_checkpoint, is_run, require_readable, run_of, without_checkpoint
from byhand.runs import metrics

LARGEST = 1e12  # of a step or a loss: a scale of larger ones shows nothing
SOFTWARE = "byhand plot"  # the PNG's metadata
POINTS = 400  # as a screen has room for; each is the mean of its steps


@dataclass(frozen=True)
class Options:
    """Draw the training and validation loss of a run."""

    run: Positional[Path]
    """The run folder, or one of its checkpoints."""
    png: Path | None = None
    """Where to write the PNG; loss.png in a run of byhand's if not given, and nowhere without matplotlib."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand plot")
    if options.png and options.png.suffix.lower() not in ("", ".png"):  # a device has none
        raise ByhandError(f"--png {shown(options.png, 200)} is no name of a PNG. End it with .png.")
    require_readable(options.run)
    run = run_of(options.run)
    name = shown(run, 200)
    rows = metrics.read(run)
    if not rows and is_run(run) and not checkpoints(run):
        raise without_checkpoint(run)
    if not rows and is_checkpoint(run):
        raise CheckpointError(f"{name} is a checkpoint without its run. Give the run folder.")
    if not rows:
        raise CheckpointError(
            f"{name} has no {metrics.METRICS} with a step in it yet. Train it first, or again if it was imported."
        )
    curves = {"train loss": _thin(rows, "train/loss"), "validation loss": _thin(rows, "val/loss")}
    curves = {name: points for name, points in curves.items() if points[0]}
    if not curves:
        raise CheckpointError(f"{name} has no {metrics.METRICS} with a loss that can be drawn. Train it again.")
    own = is_run(run)  # in another folder loss.png may be a user's own
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # a flat curve divides by its height
        warnings.simplefilter("ignore")
        unit = metrics.unit(rows)
        show(_terminal(curves, f"{name}: loss in nats per {unit}, by step"))
        if find_spec("matplotlib") and (options.png or own):
            path = options.png or run / "loss.png"
            if options.png or is_free(path, lambda content: SOFTWARE.encode() in content[:1000]):
                try:
                    _write_png(curves, path, str(run), unit)
                    show(f"wrote {shown(path, 200)}")
                except ConfigError as error:
                    if options.png:
                        raise
                    say(str(error))  # nobody asked for it
            else:
                say(f"{shown(path, 200)} was not drawn by `byhand plot`, so it stays. Name a picture with --png.")
        elif options.png:
            raise ByhandError("--png needs matplotlib, which is not installed. Run: pip install matplotlib")
    return 0


def _thin(rows: list[dict[str, Any]], key: str) -> tuple[list[float], list[float]]:
    """Return steps and values of a key, averaged in groups so that no more than POINTS are left.

    Skip values that are no numbers or too large to draw: a file may hold anything.
    """
    points = [(row["step"], row[key]) for row in rows if _drawable(row.get("step")) and _drawable(row.get(key))]
    size = max(1, -(-len(points) // POINTS))
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [g[-1][0] for g in groups], [sum(v for _, v in g) / len(g) for g in groups]


def _drawable(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _terminal(curves: dict[str, tuple[list[float], list[float]]], title: str) -> str:
    width = max(40, min(100, shutil.get_terminal_size().columns - 12))
    xs, ys = [c[0] for c in curves.values()], [c[1] for c in curves.values()]
    return plot_to_string(
        ys=ys,
        xs=xs,
        lines=["train" in name for name in curves],  # evaluations are few: draw points, distinct without colour
        character_set="ascii",
        force_ascii_characters=["+", "o"],
        width=width,
        height=16,
        title=title,
        legend_labels=list(curves),
        color=False,
    )


def _write_png(curves: dict[str, tuple[list[float], list[float]]], path: Path, run: str, unit: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, (steps, values) in curves.items():
        axes.plot(steps, values, label=name, marker="o" if len(steps) < 30 else None)
    axes.set(xlabel="step", ylabel=f"loss (nats per {unit})")
    words, fonts = title(run)
    axes.set_title(words, parse_math=False, family=fonts)  # a $ in a name begins no formula
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, path, "Choose another file with --png.", format="png", dpi=150, metadata={"Software": SOFTWARE})
