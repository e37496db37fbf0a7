"""A pass as plain values, ready for JSON: arrays and gradients by name, and the arithmetic of any of their elements.

    pass_as_json(trace, gradients)                 every tensor, application, value and gradient by name
    value_as_json(trace, "logits", (0, 3, 65))     the terms of a value
    gradient_as_json(gradients, "wte", (98, 0))    the terms of a gradient, for each use of the tensor

Each leaf of a tree of terms that was read from an array says from which element, as `source`. Numbers that are not
finite are text, as JSON has none: "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.tracing.gradients import Gradients, origin
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
    """Return an element of a tensor, and the `equation` and `terms` that made it: None for a parameter or an input.

    Raises ExplainError if there is no such element.
    """
    place = trace.resolved(name, index)
    plain = {"name": name, "index": list(place), "value": _numbers(trace.tensor(name).data[place])}
    if name not in trace.made:
        return plain | {"equation": None, "terms": None}
    application, _ = trace.made[name]
    origins = [origin(trace.name(tensor)) for tensor in application.inputs]
    return plain | {
        "equation": application.equation.name,
        "terms": _finite(trace.terms(name, place).as_json(origins)),
    }


def gradient_as_json(gradients: Gradients, name: str, index: Sequence[int] = ()) -> dict[str, Any]:
    """Return an element of a gradient, and what each of the tensor's `uses` adds to it.

    Raises ExplainError if there is no such element, or the tensor has no gradient.
    """
    uses = gradients.terms(name, index)
    place = gradients.trace.resolved(name, index)
    value = _numbers(gradients.array(name)[place])
    return {
        "name": name,
        "index": list(place),
        "value": value,
        "uses": [_finite(use.as_json()) for use in uses],
    }


def _numbers(array: Any) -> Any:
    numbers = np.asarray(array, dtype=np.float64) if np.asarray(array).dtype.kind == "O" else np.asarray(array)
    plain = numbers.tolist()
    return plain if numbers.dtype.kind != "f" or np.isfinite(numbers).all() else _finite(plain)


def _finite(plain: Any) -> Any:
    """Return plain values with numbers that are not finite as text."""
    match plain:
        case float() if not math.isfinite(plain):
            return "NaN" if math.isnan(plain) else "Infinity" if plain > 0 else "-Infinity"
        case dict():
            return {key: _finite(value) for key, value in plain.items()}
        case list():
            return [_finite(value) for value in plain]
        case _:
            return plain
