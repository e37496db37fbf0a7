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


def stream(trace: Trace, model: TinyGPT) -> list[str]:
    """Return the names of the residual stream's states: what enters the first block, and each half block's result."""
    entering = next(name for name, (use, _) in trace.made.items() if use.name.startswith("blocks."))
    first = list(trace.made)[list(trace.made).index(entering) - 1]
    halves = ("ln_1", "ln_2") if model.config.norm_position == "post" else ("x_mid", "x_out")
    return [first, *(f"blocks.{i}.{half}" for i in range(model.config.n_layers) for half in halves)]


def stages(trace: Trace, model: TinyGPT, targets: Sequence[int]) -> list[dict[str, Any]]:
    """Return, for each state of the stream and each position, the likeliest tokens, and the target's p and rank."""
    found = []
    for name in stream(trace, model):
        p = np.asarray(softmax(model.read_out(Tensor(trace.tensor(name).data))).data)[0]
        best = np.argpartition(-p, SHOWN, axis=-1)[:, :SHOWN] if p.shape[-1] > SHOWN else np.argsort(-p)
        top = [
            sorted(((int(v), float(row[v])) for v in at), key=lambda pair: -pair[1])
            for row, at in zip(p, best, strict=True)
        ]
        true = [
            [float(row[y]), int((row > row[y]).sum()) + 1] if y >= 0 else None
            for row, y in zip(p, targets, strict=True)
        ]
        found.append({"name": name, "top": top, "true": true})
    return finite(found)
