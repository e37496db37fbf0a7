"""`byhand plot`: the loss of a run, or of several, in the terminal, as PNG with matplotlib, CSV, TensorBoard's."""

from __future__ import annotations

import csv
import io
import shutil
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional
from byhand.cli.runs import event_files
from byhand.cli.terminal.picture import is_free, save, title, write
from byhand.cli.terminal.say import say, show
from byhand.cli.terminal.shown import shown
from byhand.cli.terminal.text_plot import plot_to_string
from byhand.errors import ByhandError, CheckpointError, ConfigError, command
from byhand.files.run_folder import checkpoints, is_checkpoint, is_run, require_readable, run_of, without_checkpoint
from byhand.runs import metrics

LARGEST = 1e12  # step or loss drawn; a larger scale shows nothing
SOFTWARE = "byhand plot"  # the PNG's metadata
POINTS = 400  # about what a screen can show; each averages its steps


@dataclass(frozen=True)
class Options:
    """Draw the training and validation loss of a run, or compare the validation of several."""

    runs: Positional[tuple[Path, ...]]
    """Run folders, or their checkpoints."""
    png: Path | None = None
    """Where to write the PNG; if not given, loss.png in the run if it is the only one and matplotlib is installed."""
    csv: Path | None = None
    """Where to write the numbers of all steps, as CSV."""
    to: Literal["tensorboard"] | None = None
    """Write event files for TensorBoard, with the numbers of all steps, instead of drawing."""
    out: Path = Path("tensorboard")
    """With --to: the folder for them; it gets one folder for each run."""


@dataclass(frozen=True)
class Plot:
    """Curves by name, each (steps, values), and what they measure."""

    curves: dict[str, tuple[list[float], list[float]]]
    measure: str
    names: str


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand plot")
    options = given.over()
    given.refuse(("png",) if options.to else ("out",), "with --to" if options.to else "without --to tensorboard")
    for flag, path in (("png", options.png), ("csv", options.csv)):
        if path and path.suffix.lower() not in ("", f".{flag}"):  # a device has none
            raise ByhandError(f"--{flag} {shown(path, 200)} does not end with .{flag}. Name a {flag.upper()} file.")
    if not options.runs:
        raise ByhandError("byhand plot needs RUNS. Name a run folder, or several to compare.")
    rows = {run: _rows(run) for run in dict.fromkeys(map(_folder, options.runs))}
    if options.csv:
        _write_csv(rows, options.csv)
        show(f"wrote {shown(options.csv, 200)}")
    if options.to:
        for path in event_files.write(rows, options.out):
            show(f"wrote {shown(path, 200)}")
        show(f"See them with: tensorboard --logdir {shown(command(options.out), 200)}")
        return 0
    _draw(_of_one(*rows.popitem()) if len(rows) == 1 else _of_several(rows), options)
    return 0


def _folder(run: Path) -> Path:
    require_readable(run)
    return run_of(run)


def _rows(run: Path) -> list[dict[str, Any]]:
    """Return a run's metrics; CheckpointError if there are none."""
    rows, name = metrics.read(run), shown(run, 200)
    if not rows and is_run(run) and not checkpoints(run):
        raise without_checkpoint(run)
    if not rows and is_checkpoint(run):
        raise CheckpointError(f"{name} is a checkpoint without its run. Give the run folder.")
    if not rows:
        raise CheckpointError(
            f"{name} has no {metrics.METRICS} with a step in it yet. Train it first, or again if it was imported."
        )
    return rows


def _of_one(run: Path, rows: list[dict[str, Any]]) -> Plot:
    """Return both losses of a run."""
    curves = {"train loss": _thin(rows, "train/loss"), "validation loss": _thin(rows, "val/loss")}
    curves = {name: points for name, points in curves.items() if points[0]}
    if not curves:
        raise _undrawable(run)
    return Plot(curves, f"loss in nats per {metrics.unit(rows)}", str(run))


def _of_several(rows: dict[Path, list[dict[str, Any]]]) -> Plot:
    """Return each run's validation in bits per byte, comparable across tokenizers; without it, training losses."""
    for key, measure in (
        ("val/bpb", "validation in bits per byte"),
        ("train/loss", "training loss in nats per token"),
    ):
        curves = {str(run): _thin(found, key) for run, found in rows.items()}
        if all(points[0] for points in curves.values()):
            return Plot(curves, measure, f"{len(rows)} runs")
    raise _undrawable(next(run for run in rows if not curves[str(run)][0]))


def _undrawable(run: Path) -> CheckpointError:
    return CheckpointError(
        f"{shown(run, 200)} has no {metrics.METRICS} with a loss that can be drawn. Train it again."
    )


def _draw(plot: Plot, options: Options) -> None:
    """Draw in the terminal, and as PNG if requested or if there is only one run, which then holds it."""
    run = _folder(options.runs[0])
    own = len(options.runs) == 1 and is_run(run)  # in another folder loss.png may be a user's own
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # a flat curve divides by its height
        warnings.simplefilter("ignore")
        show(_terminal(plot))
        if find_spec("matplotlib") and (options.png or own):
            path = options.png or run / "loss.png"
            if options.png or is_free(path, lambda content: SOFTWARE.encode() in content[:1000]):
                try:
                    _write_png(plot, path)
                    show(f"wrote {shown(path, 200)}")
                except ConfigError as error:
                    if options.png:
                        raise
                    say(str(error))  # nobody asked for it
            else:
                say(f"{shown(path, 200)} was not drawn by `byhand plot`, so it is kept. Name a picture with --png.")
        elif options.png:
            raise ByhandError("--png needs matplotlib, which is not installed. Run: pip install matplotlib")


def _write_csv(rows: dict[Path, list[dict[str, Any]]], path: Path) -> None:
    """Write one line per step of each run; missing numbers are empty."""
    keys = dict.fromkeys(key for found in rows.values() for row in found for key in row)
    content = io.StringIO()
    writer = csv.DictWriter(content, ["run", *keys], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"run": run, **row} for run, found in rows.items() for row in found)
    write(path, content.getvalue().encode(errors="surrogateescape"), "Choose another file with --csv.")


def _thin(rows: list[dict[str, Any]], key: str) -> tuple[list[float], list[float]]:
    """Return steps and values of a key, averaged in groups so that no more than POINTS are left.

    Skip values that are not numbers or too large to draw: a file may hold anything.
    """
    points = [(row["step"], row[key]) for row in rows if _drawable(row.get("step")) and _drawable(row.get(key))]
    size = max(1, -(-len(points) // POINTS))
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [g[-1][0] for g in groups], [sum(v for _, v in g) / len(g) for g in groups]


def _drawable(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _terminal(plot: Plot) -> str:
    width = max(40, min(100, shutil.get_terminal_size().columns - 12))
    xs, ys = zip(*plot.curves.values(), strict=True)
    return plot_to_string(
        ys=ys,
        xs=xs,
        lines=["train" in name for name in plot.curves],  # evaluations are few: points, distinct without colour
        character_set="ascii",
        force_ascii_characters=["+", "o", "x", "*", "#", "@", "%", "&"],
        width=width,
        height=16,
        title=f"{shown(plot.names, 200)}: {plot.measure}, by step",
        legend_labels=[shown(name, 60) for name in plot.curves],
        color=False,
    )


def _write_png(plot: Plot, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, (steps, values) in plot.curves.items():
        axes.plot(steps, values, label=title(name)[0], marker="o" if len(steps) < 30 else None)
    axes.set(xlabel="step", ylabel=plot.measure)
    words, fonts = title(plot.names)
    axes.set_title(words, parse_math=False, family=fonts)  # a $ in a name is not math
    axes.grid(alpha=0.3)
    for text in axes.legend().get_texts():
        text.set(parse_math=False, family=fonts)
    save(figure, path, "Choose another file with --png.", format="png", dpi=150, metadata={"Software": SOFTWARE})
