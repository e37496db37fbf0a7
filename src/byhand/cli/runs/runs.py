"""`byhand runs`: the runs in a folder, a line each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import say, show, show_json
from byhand.cli.terminal.shown import shown
from byhand.errors import ByhandError, ConfigError, reason
from byhand.files.run_folder import checkpoints, is_run, without_checkpoint
from byhand.model import declared
from byhand.runs import metrics, stored

HEAD = ("run", "parameters", "steps", "of", "val/loss", "val/bpb", "text")


@dataclass(frozen=True)
class Options:
    """List the runs in a folder: parameters, steps, the last validation loss, and the text."""

    folder: Positional[Path] = Path("runs")
    """Where the runs are."""
    json: Switch = False
    """Print one JSON list."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand runs")
    try:
        folders = sorted(path for path in options.folder.iterdir() if path.is_dir() and is_run(path))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot list {shown(options.folder, 200)}: {reason(error)}. Name a folder of runs."
        ) from None
    found: list[dict[str, Any]] = []
    for folder in folders:
        try:
            found.append(facts(folder))
        except ByhandError as error:
            say(str(error))
    if options.json:
        show_json(found, indent=2)
    elif not found:
        say(f"{shown(options.folder, 200)} has no run with a checkpoint. Make one with `byhand train`.")
    else:
        lines = [HEAD, *(tuple(_plain(row[name]) for name in HEAD) for row in found)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for first, *numbers, last in lines:
            columns = (text.rjust(width) for text, width in zip(numbers, widths[1:], strict=False))
            show("  ".join([first.ljust(widths[0]), *columns, last]))
    return 0


def facts(run: Path) -> dict[str, Any]:
    """Return a run's facts for the list, from its metrics and its newest checkpoint, without reading arrays."""
    newest = next(iter(checkpoints(run)), None)
    if newest is None:
        raise without_checkpoint(run)
    config, state = stored.settings(newest)
    evaluated = [row for row in metrics.read(run) if row["step"] <= state["step"] and "val/loss" in row]
    last = evaluated[-1] if evaluated else {}
    trained = "imported" not in state
    return {
        "run": str(run),
        "parameters": sum(math.prod(parameter.shape) for parameter in declared(config.model).values()),
        "steps": state["step"],
        "of": config.steps if trained else None,
        "val/loss": last.get("val/loss"),
        "val/bpb": last.get("val/bpb"),
        "text": ", ".join(config.data.sources) if trained else None,
    }


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if type(value) is int else shown(value, 60)
