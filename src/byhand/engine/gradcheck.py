r"""Check a derivative against central differences on a random cotangent.

Equation    \langle d_y, J v \rangle \approx \frac{\langle d_y, f(x + h v) - f(x - h v) \rangle}{2h}
            for every unit vector v of every floating-point input
Source      Griewank & Walther, Evaluating Derivatives, 2nd ed., chapter 1
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from byhand.engine.arrays import Array, as_tuple, namespace
from byhand.engine.interpreter import no_grad
from byhand.engine.tensor import Tensor


def gradcheck(
    function: Callable[..., Any], *inputs: Array, d: Array | tuple[Array, ...], step: float = 1e-5
) -> float:
    """Return the largest relative error of the gradients of `function` at float64 inputs.

    function takes tensors and returns a tensor (or several); d holds the cotangent of each result. The error of
    one input is max|analytic - numeric| / max(max|analytic|, max|numeric|, max|d|): relative to the largest
    derivative, or to the cotangent if the derivative vanishes. A NaN or infinite derivative is an infinite error.
    """
    leaves = [Tensor(x, requires_grad=_is_float(x)) for x in inputs]
    results = as_tuple(function(*leaves))
    cotangents = as_tuple(d)
    for result, cotangent in zip(results, cotangents, strict=True):
        result.backward(cotangent)
    worst = 0.0
    for k, leaf in enumerate(leaves):
        if not leaf.requires_grad:
            continue
        numeric = _differences(function, inputs, k, cotangents, step)
        xp = namespace(numeric)
        analytic = xp.zeros_like(numeric) if leaf.grad is None else leaf.grad
        if numeric.size == 0:
            continue
        scale = max(float(xp.max(xp.abs(a))) for a in (analytic, numeric, *(c for c in cotangents if c.size)))
        error = float(xp.max(xp.abs(analytic - numeric))) / max(scale, 1e-300)
        worst = max(worst, math.inf if math.isnan(error) else error)
    return worst


def _differences(
    function: Callable[..., Any], inputs: tuple[Array, ...], k: int, cotangents: tuple[Array, ...], step: float
) -> Array:
    """Return the central difference of <d, function> for each element of input k."""
    xp = namespace(inputs[k])
    shape = inputs[k].shape
    flat = xp.reshape(inputs[k], (-1,))
    where = xp.arange(flat.shape[0])

    def value(i: int, h: float) -> float:
        moved = xp.reshape(xp.where(where == i, flat + h, flat), shape)
        results = as_tuple(function(*inputs[:k], moved, *inputs[k + 1 :]))
        return sum(float(xp.sum(c * r.data)) for c, r in zip(cotangents, results, strict=True))

    with no_grad():
        slopes = [(value(i, step) - value(i, -step)) / (2 * step) for i in range(flat.shape[0])]
    return xp.reshape(xp.asarray(slopes, dtype=flat.dtype), shape)


def _is_float(x: Array) -> bool:
    return namespace(x).isdtype(x.dtype, "real floating")
