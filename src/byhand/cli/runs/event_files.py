"""TensorBoard's event files of runs, for `byhand plot --to tensorboard`.

    OUT/RUN/events.out.tfevents.byhand    one event for each line of metrics.jsonl: its numbers under their keys

The lines have no clock. An event's time is the seconds of training until then: tokens / (tokens/s), summed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from byhand.cli.terminal.shown import shown
from byhand.errors import ConfigError, install, reason
from byhand.files.writing import replace
from byhand.runs import metrics

NAME = "events.out.tfevents.byhand"  # always the same, so that the next command replaces it
KEYS = (*metrics.NUMBERS, "tokens")
LARGEST = 3.4e38  # a float32


def write(runs: dict[Path, list[dict[str, Any]]], out: Path) -> list[Path]:
    """Write each run's rows into a folder of its name in `out`; return the files. ConfigError if one cannot be."""
    if find_spec("tensorboardX") is None:
        raise ConfigError(f"--to tensorboard needs tensorboardX. Use {install('tensorboard')}.")
    paths = [out / name / NAME for name in _names(runs)]
    try:
        for path, rows in zip(paths, runs.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, [_events(rows)])
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = f"{reason(error)}. Choose another folder with --out."
        raise ConfigError(f"cannot write into {shown(out, 200)}: {why}") from None
    return paths


def _names(runs: Iterable[Path]) -> list[Path]:
    """Return the runs' paths below the folder that holds them all."""
    parts = [Path(os.path.abspath(run)).parts for run in runs]
    levels = zip(*(each[:-1] for each in parts), strict=False)
    shared = sum(1 for _ in takewhile(lambda level: len({*level}) == 1, levels))
    return [Path(*each[max(1, shared) :]) for each in parts]


def _events(rows: list[dict[str, Any]]) -> bytes:
    """Return a file of events. SummaryWriter would name it by host and clock, and write from another thread."""
    from tensorboardX.record_writer import RecordWriter

    Event = import_module("tensorboardX.proto.event_pb2").Event  # made when imported: no type checker knows them
    Summary = import_module("tensorboardX.proto.summary_pb2").Summary
    with TemporaryDirectory() as folder:
        writer = RecordWriter(os.path.join(folder, NAME))
        writer.write(Event(file_version="brain.Event:2").SerializeToString())
        for row, seconds in zip(rows, _seconds(rows), strict=True):
            found = {key: row[key] for key in KEYS if key in row and abs(row[key]) <= LARGEST}
            values = [Summary.Value(tag=key, simple_value=value) for key, value in found.items()]
            event = Event(wall_time=seconds, step=row["step"], summary=Summary(value=values))
            writer.write(event.SerializeToString())
        writer.close()
        return Path(folder, NAME).read_bytes()


def _seconds(rows: list[dict[str, Any]]) -> Iterator[float]:
    seconds, before = 0.0, None
    for row in rows:
        tokens, rate = row.get("tokens"), row.get("train/tok_per_sec")
        if tokens is not None and before is not None and rate:
            seconds += max(0.0, (tokens - before) / rate)
        before = tokens
        yield seconds
