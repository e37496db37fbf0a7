"""The first array of a pass that became NaN or infinite."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from byhand.engine import BackwardStep, Tensor, walk_back
from byhand.engine.backward import applications


def first_non_finite(loss: Tensor) -> str:
    """Return the name of the first array that is not finite, through the forward, then the backward pass.

    "" if all are finite.
    """
    return non_finite_value(loss) or non_finite_gradient(walk_back(loss, np.ones_like(loss.data)))


def non_finite_value(result: Tensor) -> str:
    """Return the name of the first array of the forward pass that is not finite; "" if all are."""
    for node in applications(result):
        for tensor in node.inputs:
            if tensor.requires_grad and not np.isfinite(tensor.data).all():
                return tensor.name or f"an input of {node.equation.name}"
    return "" if np.isfinite(result.data).all() else result.name or "loss"


def non_finite_gradient(steps: Iterable[BackwardStep]) -> str:
    """Return the name of the first gradient of the backward pass that is not finite; "" if all are."""
    for step in steps:
        for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
            if d is not None and not np.isfinite(d).all():
                return f"the gradient of {tensor.name or step.node.equation.name}"
    return ""
