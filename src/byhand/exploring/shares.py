"""What each part of a model added to a logit: the residual stream is a sum, and the head reads it linearly.

The final norm's mean and scale are those of the finished stream, so the shares and the bias sum to the logit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.equations.low_rank import adapted
from byhand.equations.merge_heads import merge_heads
from byhand.errors import DataError
from byhand.exploring.stages import stream
from byhand.model import TinyGPT
from byhand.tracing.answers import finite
from byhand.tracing.trace import Trace

NOTHING = 1e-6  # relative to a part: what is left of it is rounding


def shares(trace: Trace, model: TinyGPT, position: int, token: int, against: int | None = None) -> dict[str, Any]:
    """Return each part's share of a logit, before a softcap; with `against`, of its difference from that logit."""
    if model.config.norm_position == "post":
        raise DataError("this model normalises the stream in each block, so its parts do not add up.")
    asked = [token] if against is None else [token, against]
    shape = trace.tensor("logits").shape
    if not (0 <= position < shape[1] and all(0 <= v < shape[2] for v in asked)):
        raise DataError(f"there is no logit [0,{position},{asked[-1]}]: the logits are {tuple(shape)}.")
    column, bias = _column(trace, asked)
    parts = dict(_parts(trace, model, position))
    scale, centre, gain, shift = _held(trace, model, position)
    read = gain * column
    found = [
        {"name": name, "value": float(((part - part.mean() * centre) * scale) @ read)} for name, part in parts.items()
    ]
    bias += float(shift @ column)
    total = sum(part["value"] for part in found) + bias
    return finite(
        {"position": position, "token": token, "against": against, "parts": found, "bias": bias, "total": total}
    )


def _column(trace: Trace, asked: list[int]) -> tuple[np.ndarray, float]:
    """Return the head's column of a token, or the difference of two, and its bias."""
    logits = trace.made["logits"][0]
    while logits.equation.name != "linear":  # behind it a softcap, or an adapter
        logits = trace.made[trace.name(logits.inputs[0])][0]
    columns = [np.stack([np.asarray(t.data[..., v], np.float64) for v in asked], -1) for t in logits.inputs[1:]]
    column, *bias = (each @ (1.0, -1.0)[: len(asked)] for each in columns)
    return column, float(bias[0]) if bias else 0.0


def _parts(trace: Trace, model: TinyGPT, position: int) -> list[tuple[str, Any]]:
    """Return the vectors (C,) that sum to the stream's last state, by name."""
    first, *halves = stream(trace, model)

    def at(name: str) -> np.ndarray:
        return np.asarray(trace.tensor(name).data[0, position], np.float64)

    use = trace.made[first][0]
    embedding = trace.name(use.inputs[0]) if use.equation.name == "add_positional" else first
    found: list[tuple[str, Any]] = [(embedding, at(embedding))]
    if embedding != first:
        found.append(("wpe", at(first) - at(embedding)))
    for half in halves:
        added = trace.name(trace.made[half][0].inputs[1])
        whole = at(added)
        heads = _heads(trace, added, position)
        found += heads
        rest = whole - sum((part for _, part in heads), np.zeros_like(whole))
        if not heads or np.abs(rest).max() > NOTHING * np.abs(whole).max():
            inputs = trace.made[added][0].inputs
            found.append((trace.name(inputs[2]) if heads and len(inputs) == 3 else added, rest))
    return found


def _heads(trace: Trace, added: str, position: int) -> list[tuple[str, Any]]:
    """Return what each head added through the output projection; nothing if another equation lies between."""
    use = trace.made[added][0]
    if use.equation is adapted:
        use = trace.made[trace.name(use.inputs[0])][0]
    merged = trace.made.get(trace.name(use.inputs[0])) if use.equation.name == "linear" else None
    if merged is None or merged[0].equation is not merge_heads:
        return []
    mixed = np.asarray(merged[0].inputs[0].data[0, :, position], np.float64)
    weight = np.asarray(use.inputs[1].data, np.float64).reshape((*mixed.shape, -1))
    block = added.rpartition(".")[0]
    return [(f"{block}.head.{h}", vector @ rows) for h, (vector, rows) in enumerate(zip(mixed, weight, strict=True))]


def _held(trace: Trace, model: TinyGPT, position: int) -> tuple[float, float, Any, Any]:
    """Return the final norm as it stands at a position: its scale, 1 if it centres, its gain and its bias."""
    if not model.layers.norm:
        ones = np.ones(model.config.d_model)
        return 1.0, 0.0, ones, 0 * ones
    use, _ = trace.made["ln_f"]
    x = np.asarray(use.inputs[0].data[0, position], np.float64)
    gain, *bias = [np.asarray(tensor.data, np.float64) for tensor in use.inputs[1:]] or [np.ones_like(x)]
    centre = float(use.equation.name == "layer_norm")
    scale = 1 / np.sqrt(np.square(x - x.mean() * centre).mean() + use.static["eps"])
    return float(scale), centre, gain, bias[0] if bias else np.zeros_like(x)
