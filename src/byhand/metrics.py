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
    """Return the lines in order; one that a kill cut short is left out."""
    try:
        lines = (run / METRICS).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def keep_until(run: Path, step: int) -> None:
    """Drop what a run wrote after the step that it is resumed from, so that no update appears twice."""
    kept = "".join(json.dumps(row) + "\n" for row in read(run) if row["step"] <= step)
    path, rewritten = run / METRICS, run / f"{METRICS}.rewritten"
    if path.exists() and path.read_text(encoding="utf-8") == kept:
        return
    rewritten.write_text(kept, encoding="utf-8")
    rewritten.replace(path)
