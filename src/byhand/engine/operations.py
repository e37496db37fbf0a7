"""Arithmetic operations on numbers and on long rows of them.

Up to EXACT numbers are computed one by one in Python, and a sum rounds once. NumPy computes longer rows, in float64
with sums in its longest precision: their last digit may differ.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

EXACT = 1 << 15
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": lambda v: math.exp(v) if v < 709 else math.inf,
    "log": math.log,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "erf": math.erf,
    "cos": math.cos,
    "sin": math.sin,
    "square": lambda v: v * v,
    "positive": lambda v: 0.0 if v <= 0 else v,  # NaN stays NaN
    "step": lambda v: 1.0 if v > 0 else 0.0,
    "negative": lambda v: -v,
}


def drawn(numbers: Sequence[float]) -> float:
    """Return the id drawn by u from probabilities: the first whose running sum is above u times the whole sum."""
    u, *p = numbers
    sums = list(itertools.accumulate(p))
    return float(bisect.bisect_right(sums, min(u * sums[-1], math.nextafter(sums[-1], 0.0))))


OPERATIONS: dict[str, Callable[[list[float]], float]] = {
    "draw": drawn,
    "argmax": lambda v: float(v.index(max(v))),
    "sum": math.fsum,
    "product": math.prod,
    "max": max,
    "ratio": lambda v: math.nan if v[0] == v[1] == 0.0 else v[0] / v[1],
    "kept": lambda v: v[0] if v[1] <= v[2] else -math.inf,
}


def operate(op: str, values: Any) -> Any:
    """Return the value of an operation on a list or array of numbers.

    A list with arrays is computed elementwise, and the value is an array.
    """
    if hasattr(values, "tolist"):
        if len(values) > EXACT and op in ("sum", "max"):
            import numpy as np  # slow to import

            return float(values.max() if op == "max" else values.sum(dtype=np.longdouble))
        values = values.tolist()
    elif any(map(is_array, values)):
        return _each(op, values)
    return OPERATIONS[op](values) if op in OPERATIONS else FUNCTIONS[op](*values)


def is_array(value: Any) -> bool:
    """Return whether a value is an array, not a single number."""
    return bool(getattr(value, "shape", ()))


def _each(op: str, values: list[Any]) -> Any:
    """Return the operation's value elementwise; plain numbers broadcast."""
    import numpy as np

    with np.errstate(all="ignore"):
        match op:
            case "product":
                return reduce(operator.mul, values)
            case "sum" if len(values) == 2:
                return values[0] + values[1]
            case "negative":
                return -values[0]
            case "square":
                return values[0] * values[0]
            case "exp" if values[0].size > EXACT:
                return np.exp(values[0])
            case _:
                rows = (column.tolist() for column in np.broadcast_arrays(*values))
                return np.array([operate(op, list(row)) for row in zip(*rows, strict=True)])
