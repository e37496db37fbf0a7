"""metrics.jsonl: one JSON line for each update, readable by anything.

Keys: step, tokens, train/loss (nats), lr, grad_norm, train/tok_per_sec, and at evaluations val/loss (nats) and
val/bpb (bits per byte).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from byhand.errors import CheckpointError
from byhand.train import Progress

METRICS = "metrics.jsonl"


def append(run: Path, progress: Progress) -> None:
    """Add the line of one update."""
    line: dict[str, Any] = {
        "step": progress.step,
        "tokens": progress.tokens,
        "train/loss": progress.loss,
        "lr": progress.lr,
        "grad_norm": progress.grad_norm,
        "train/tok_per_sec": round(progress.tokens_per_second, 1),
    }
    if progress.val_loss is not None:
        line |= {"val/loss": progress.val_loss, "val/bpb": progress.val_loss / math.log(2)}
    try:
        with (run / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:
        raise CheckpointError(
            f"cannot write {run / METRICS}: {error.strerror}. Free some space and resume."
        ) from None


def read(run: Path) -> list[dict[str, Any]]:
    """Return the lines in order; those that a kill cut short or something else damaged are left out."""
    try:
        lines = (run / METRICS).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"cannot read {run / METRICS}: {error.strerror}. Move it away, or mend it.") from None
    return [row for line in lines if (row := _row(line))]


def _row(line: str) -> dict[str, Any] | None:
    """Return a line's numbers by key, or None if it is no line of ours."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(row, dict) and isinstance(row.get("step"), int) and isinstance(row.get("train/loss"), float)
    return row if whole else None


def keep_until(run: Path, step: int) -> None:
    """Drop what a run wrote after the step that it is resumed from, so that no update appears twice."""
    kept = "".join(json.dumps(row) + "\n" for row in read(run) if row["step"] <= step)
    path, rewritten = run / METRICS, run / f"{METRICS}.rewritten"
    if not path.exists() or path.read_bytes() == kept.encode():
        return
    try:
        rewritten.write_text(kept, encoding="utf-8")
        rewritten.replace(path)
    except OSError as error:
        raise CheckpointError(f"cannot write {rewritten}: {error.strerror}. Free some space and resume.") from None
