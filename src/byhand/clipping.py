"""Clipping of all gradients by their global norm."""

from __future__ import annotations

import math
from typing import Any

from byhand.engine.arrays import namespace
from byhand.layers.parameter import Arrays


def gradient_norm(gradients: Arrays) -> Any:
    """Return the Euclidean norm of all gradients together, as an array; infinite if one is not finite.

    The reduction runs in the namespace's default real type with compensated summation (Knuth's TwoSum), so the order
    of the parameters does not matter.
    """
    if not gradients:
        return 0.0
    xp = namespace(next(iter(gradients.values())))
    wide = xp.__array_namespace_info__().default_dtypes()["real floating"]
    squares = xp.stack([xp.asarray(xp.sum(g * g), dtype=wide) for g in gradients.values()])
    finite = xp.isfinite(squares)
    total = lost = xp.zeros((), dtype=wide)
    for i in range(len(gradients)):
        square = xp.where(finite[i], squares[i], xp.zeros_like(total))
        longer = total + square
        part = longer - total
        lost = lost + ((total - (longer - part)) + (square - part))
        total = longer
    return xp.where(xp.all(finite), xp.sqrt(total + lost), xp.asarray(math.inf, dtype=wide))


def clip_gradients(gradients: Arrays, norm: Any, max_norm: Any) -> Arrays:
    """Return the gradients scaled by max_norm / norm if the global norm exceeds max_norm (0: never).

    An array max_norm must be positive.
    """
    if not gradients or (isinstance(max_norm, (int, float)) and not max_norm):
        return gradients
    xp = namespace(norm)
    scale = max_norm / xp.maximum(norm, xp.asarray(max_norm, dtype=norm.dtype))  # 1 for short gradients
    return {name: g * xp.asarray(scale, dtype=g.dtype) for name, g in gradients.items()}
