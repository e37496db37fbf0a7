"""Central differences: recompute a pass from its leaves and applications with one element changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.engine.arrays import as_tuple
from byhand.engine.terms import Index
from byhand.tracing.passes import Pass
from byhand.tracing.slopes import in_float64, perturbed

STEP = 1e-6  # relative to max(1, |x|), in float64


def central_difference(trace: Pass, d_result: Any, name: str, index: Index) -> float:
    """Return the slope of sum(d_result * result) along one element, by two passes in float64."""
    h = STEP * max(1.0, abs(float(trace.tensor(name).data[index])))
    (d,) = in_float64([np.asarray(d_result)])
    ahead, behind = (float((d * recomputed(trace, name, index, step)).sum()) for step in (h, -h))
    return (ahead - behind) / (2 * h)


def recomputed(trace: Pass, name: str, index: Index, step: float) -> Any:
    """Return the result of the pass in float64 with `step` added to one element of one of its tensors."""
    arrays: dict[int, Any] = {}
    changed = trace.tensor(name)

    def keep(tensor: Tensor, array: Any) -> None:
        arrays[id(tensor)] = perturbed(array, index, step) if tensor is changed else array

    for leaf in trace.leaves.values():
        keep(leaf, *in_float64([np.asarray(leaf.data)]))
    for application in trace.applications:
        inputs = (arrays[id(tensor)] for tensor in application.inputs)
        result, _ = application.equation.forward(*inputs, **application.static)
        for tensor, array in zip(application.results, as_tuple(result), strict=True):
            keep(tensor, array)
    return arrays[id(trace.result)]
