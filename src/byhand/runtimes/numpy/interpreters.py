"""Interpreters that record nothing: caches written in place, rounded weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.engine.context import full_name
from byhand.engine.interpreter import Evaluate
from byhand.formats.blocks import rounded_rows
from byhand.formats.registry import FORMATS, Format
from byhand.runtimes.protocol import Request


def with_weights(model: Any, request: Request) -> tuple[Any, Evaluate]:
    """Return the model with weights in the requested format, and the interpreter that computes with them."""
    kind = FORMATS[request.weights]
    if kind.block > 1:
        return model, InBlocks(kind)
    return _rounded(model, kind, request.moves), InPlace()


class InPlace(Evaluate):
    """Evaluates, and writes new keys and values into the old cache: nothing reads it again."""

    def apply(self, equation: Any, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Apply the equation; `extend_cache` in place."""
        if equation.name != "extend_cache":
            return super().apply(equation, inputs, static, name)
        kept, x, start = (t.data for t in inputs)
        extend(kept, x, start)
        return Tensor(kept, name=full_name(name))


class InBlocks(InPlace):
    """Multiplies as with quantised weights: rounds the weight to its format and x to Q8_0, along the summed axis."""

    def __init__(self, kind: Format) -> None:
        self._kind = kind
        self._made: dict[int, tuple[Any, np.ndarray]] = {}  # by the weight's address; holds the weight, too

    def apply(self, equation: Any, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Apply the equation; `linear` and `embedding` to rounded numbers."""
        if equation.name == "linear":
            x, weight, *bias = inputs
            inputs = Tensor(rounded_rows(x.data)), Tensor(self._rounded(weight.data, 0)), *bias
        elif equation.name == "embedding":
            table, tokens = inputs
            inputs = Tensor(self._rounded(table.data, 1)), tokens
        return super().apply(equation, inputs, static, name)

    def _rounded(self, weight: np.ndarray, axis: int) -> np.ndarray:
        """Return a weight rounded along an axis; a tied head's is a table's transpose."""
        place = weight.__array_interface__["data"][0]
        if place not in self._made:
            along = weight if axis else weight.T
            self._made[place] = weight, self._kind.rounded(along).astype(weight.dtype)
        found = self._made[place][1]
        return found if axis else found.T


def extend(kept: np.ndarray, x: np.ndarray, start: np.ndarray) -> None:
    """Apply `extend_cache` in place: kept (B, H, S, D), x (B, H, T, D), start (B,)."""
    steps, places = x.shape[2], kept.shape[2]
    t = np.arange(max(0, steps - places), steps)
    streams = np.arange(len(x))[:, None]
    kept[streams, :, (start[:, None] + t) % places] = x[:, :, t].transpose(0, 2, 1, 3)


def _rounded(model: Any, kind: Format, moves: bool) -> Any:
    """Return the model with every matrix and table rounded to a format, in the model's own type.

    moves  may replace its arrays one by one, so that memory never holds both copies
    """
    if kind.native:
        return model
    if moves:
        for p in model.parameters().values():
            p.data = kind.rounded(p.data).astype(p.dtype, copy=False) if p.ndim > 1 else p.data
        return model
    arrays = {
        n: kind.rounded(p.data).astype(p.dtype) if p.ndim > 1 else p.data for n, p in model.parameters().items()
    }
    return type(model)(model.config, arrays=arrays)
