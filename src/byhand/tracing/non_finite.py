"""Which array of a pass became NaN or infinite first."""

from __future__ import annotations

import numpy as np

from byhand.engine import Tensor, walk_back
from byhand.engine.backward import applications


def first_non_finite(loss: Tensor) -> str:
    """Return the name of the first array that is not finite, in the order of the forward pass, then the backward.

    "" if all are finite.
    """
    for node in applications(loss):
        for tensor in node.inputs:
            if tensor.requires_grad and not np.isfinite(tensor.data).all():
                return tensor.name or f"an input of {node.equation.name}"
    if not np.isfinite(loss.data).all():
        return loss.name or "loss"
    for step in walk_back(loss, np.ones_like(loss.data)):
        for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
            if d is not None and not np.isfinite(d).all():
                return f"the gradient of {tensor.name or step.node.equation.name}"
    return ""
