"""The prediction after each half of a block: the model's own head on the residual stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.equations.softmax import softmax
from byhand.model import TinyGPT
from byhand.tracing.answers import finite
from byhand.tracing.trace import Trace

SHOWN = 3  # tokens at each position
ROWS = 128  # positions that the head reads at once, which bounds the logits in memory


def stream(trace: Trace, model: TinyGPT) -> list[str]:
    """Return the names of the residual stream's states: what enters the first block, and each half block's result."""
    entering = next(name for name, (use, _) in trace.made.items() if use.name.startswith("blocks."))
    first = list(trace.made)[list(trace.made).index(entering) - 1]
    halves = ("ln_1", "ln_2") if model.config.norm_position == "post" else ("x_mid", "x_out")
    return [first, *(f"blocks.{i}.{half}" for i in range(model.config.n_layers) for half in halves)]


def stages(trace: Trace, model: TinyGPT, targets: Sequence[int]) -> list[dict[str, Any]]:
    """Return, for each state of the stream and each position, the likeliest tokens, and the target's p and rank."""
    names = stream(trace, model)
    together = max(1, ROWS // len(targets))  # states that the head reads at once
    found = []
    for begin in range(0, len(names), together):
        some = names[begin : begin + together]
        states = np.concatenate([trace.tensor(name).data for name in some])
        p = np.asarray(softmax(model.read_out(Tensor(states))).data)
        found += [_stage(name, rows, targets) for name, rows in zip(some, p, strict=True)]
    return finite(found)


def _stage(name: str, p: np.ndarray, targets: Sequence[int]) -> dict[str, Any]:
    shown = min(SHOWN, p.shape[-1])
    best = np.argpartition(-p, shown - 1, axis=-1)[:, :shown]
    top = [
        sorted(((int(v), float(row[v])) for v in at), key=lambda pair: -pair[1])
        for row, at in zip(p, best, strict=True)
    ]
    true = [
        [float(row[y]), int((row > row[y]).sum()) + 1] if y >= 0 else None for row, y in zip(p, targets, strict=True)
    ]
    return {"name": name, "top": top, "true": true}
