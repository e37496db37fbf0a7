"""A pass as plain values, ready for JSON: arrays and gradients by name, and the arithmetic of any of their elements.

    pass_as_json(trace, gradients)                 every tensor, application, value and gradient by name
    value_as_json(trace, "logits", (0, 3, 65))     the answer to a value
    gradient_as_json(gradients, "wte", (98, 0))    the answer to a gradient

Each leaf of a tree of terms that was read from an array says from which element, as `source`. Numbers that are not
finite are text, as JSON has none: "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.tracing.answers import finite
from byhand.tracing.gradients import Gradients
from byhand.tracing.passes import Pass


def pass_as_json(trace: Pass, gradients: Gradients | None = None) -> dict[str, Any]:
    """Return `Trace.as_json` with the `values` of all tensors and, if given, the `gradients` of those that have one.

    Arrays become nested lists: a model of a million parameters takes some 20 MB.
    """
    plain = trace.as_json() | {"values": {name: _numbers(array) for name, array in trace.values.items()}}
    if gradients:
        plain["gradients"] = {name: _numbers(d) for name, d in gradients.by_name.items()}
    return plain


def value_as_json(trace: Pass, name: str, index: Sequence[int] = ()) -> dict[str, Any]:
    """Return an element of a tensor with the `equation` and `terms` that made it: None for a parameter or an input.

    Raises ExplainError if there is no such element.
    """
    return trace.answer(name, index).as_json()


def gradient_as_json(gradients: Gradients, name: str, index: Sequence[int] = ()) -> dict[str, Any]:
    """Return an element of a gradient; its `terms` are a sum with a part for each of the tensor's `uses`.

    Raises ExplainError if there is no such element, or the tensor has no gradient.
    """
    return gradients.answer(name, index).as_json()


def _numbers(array: Any) -> Any:
    numbers = np.asarray(array, dtype=np.float64) if np.asarray(array).dtype.kind == "O" else np.asarray(array)
    plain = numbers.tolist()
    return plain if numbers.dtype.kind != "f" or np.isfinite(numbers).all() else finite(plain)
