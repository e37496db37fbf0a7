"""A pass as plain values, ready for JSON: arrays and gradients by name, and the arithmetic of any of their elements.

    pass_as_json(trace, gradients)                 every tensor, application, value and gradient by name
    value_as_json(trace, "logits", (0, 3, 65))     the answer for a value
    gradient_as_json(gradients, "wte", (98, 0))    the answer for a gradient

Each leaf of a tree that was read from an array names the element in `source`. Non-finite numbers are text, since JSON
has none: "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.tracing.answers import finite
from byhand.tracing.gradients import Gradients
from byhand.tracing.passes import Pass


def pass_as_json(trace: Pass, gradients: Gradients | None = None) -> dict[str, Any]:
    """Return `Trace.as_json` with the `values` of all tensors and, if given, their `gradients`.

    Arrays become nested lists: a model of a million parameters takes some 20 MB.
    """
    plain = trace.as_json() | {"values": {name: _numbers(array) for name, array in trace.values.items()}}
    if gradients:
        plain["gradients"] = {name: _numbers(d) for name, d in gradients.by_name.items()}
    return plain


def value_as_json(trace: Pass, name: str, index: Sequence[int] = ()) -> dict[str, Any]:
    """Return an element of a tensor with its `equation` and `terms`, both None for a parameter or an input.

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
