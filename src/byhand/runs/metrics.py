"""metrics.jsonl: one JSON line per update, readable by anything.

Keys: step, tokens, train/loss (nats per token), lr, grad_norm, train/tok_per_sec, and at evaluations val/loss (nats
per token) and val/bpb (bits per byte). Where tokens are not bytes also bytes_per_token, of the validation windows.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from byhand.corpus.dataset import bits_per_byte
from byhand.errors import CheckpointError, reason
from byhand.files import writing
from byhand.files.reading import read_regular, refuse_constant
from byhand.files.run_folder import METRICS, again_with, checkpoints
from byhand.runs.trainer import Progress

MOST = 1 << 32  # bytes: some 20 million updates
LONGEST = 4096  # bytes of a line; ours have 200
BYTES_PER_TOKEN = "bytes_per_token"
BEGINNING = b'{"step": '  # of each line
COUNTS = ("step", "tokens")
NUMBERS = ("train/loss", "lr", "grad_norm", "train/tok_per_sec", "val/loss", "val/bpb", BYTES_PER_TOKEN)
LARGEST = 10**18


def append(run: Path, progress: Progress) -> None:
    """Append the line of one update; a checkpoint makes it durable before taking its own name."""
    line: dict[str, Any] = {
        "step": progress.step,
        "tokens": progress.tokens,
        "train/loss": progress.loss,
        "lr": progress.lr,
        "grad_norm": progress.grad_norm,
        "train/tok_per_sec": round(progress.tokens_per_second, 1),
    }
    size = progress.bytes_per_token
    if size != 1:
        line[BYTES_PER_TOKEN] = size
    if progress.val_loss is not None:
        line["val/loss"] = progress.val_loss
        if size:
            line["val/bpb"] = bits_per_byte(progress.val_loss, size)
    try:
        writing.append(run / METRICS, f"{json.dumps(line)}\n".encode())
    except OSError as error:
        raise _unwritten(run, error) from None


def read(run: Path) -> list[dict[str, Any]]:
    """Return the lines in order, without damaged ones, such as one that a kill cut short."""
    return [row for line in _content(run).split(b"\n") if (row := _row(line))]


def unit(rows: list[dict[str, Any]]) -> str:
    """Return the unit of the lines' losses: byte or token."""
    return "token" if any(BYTES_PER_TOKEN in row for row in rows) else "byte"


def require_own(run: Path) -> None:
    """Raise CheckpointError if a new run finds lines that byhand did not write; a kill may have cut the last."""
    for line in _content(run).replace(b"\0", b"").split(b"\n"):
        if not (line.startswith(BEGINNING) or BEGINNING.startswith(line)):
            raise CheckpointError(
                f"{run / METRICS} has lines that byhand did not write. Move it away, or choose another --out."
            )


def keep_until(run: Path, step: int) -> None:
    """Drop the lines after the step that the run resumes from, so that no update appears twice."""
    if (run / METRICS).is_symlink():
        raise CheckpointError(f"{run / METRICS} is a symbolic link. Put a file in its place, or delete it.")
    written = _content(run)
    rows = [(line, row) for line in written.split(b"\n") if (row := _row(line))]
    kept = b"".join(line + b"\n" for line, row in rows if row["step"] <= step)
    if written == kept:
        return
    try:
        writing.replace(run / METRICS, [kept])
    except OSError as error:
        raise _unwritten(run, error) from None


def _unwritten(run: Path, error: OSError) -> CheckpointError:
    again = again_with(next(iter(checkpoints(run)), None))
    return CheckpointError(f"cannot write {error.filename}: {reason(error)}. {writing.remedy(error, again)}")


def _content(run: Path) -> bytes:
    try:
        return read_regular(run / METRICS, MOST)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise CheckpointError(f"cannot read {run / METRICS}: {reason(error)}. Move it away, or fix it.") from None


def _row(line: bytes) -> dict[str, Any] | None:
    """Return a line's values by key, or None if it is not one flat table of finite numbers."""
    if len(line) > LONGEST or line.count(b"{") != 1 or b"[" in line:
        return None
    try:
        row = json.loads(line, parse_constant=refuse_constant)
    except ValueError:
        return None
    if not isinstance(row, dict) or not {"step", "train/loss"} <= row.keys():
        return None
    counts = all(type(row[key]) is int and 0 <= row[key] <= LARGEST for key in COUNTS if key in row)
    numbers = all(_is_number(row[key]) for key in NUMBERS if key in row)
    return row if counts and numbers else None


def _is_number(value: object) -> bool:
    return math.isfinite(value) if type(value) is float else type(value) is int and abs(value) <= LARGEST
