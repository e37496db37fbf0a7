"""Central differences: recompute what depends on one element of a pass with that element changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.engine.arrays import as_tuple
from byhand.engine.terms import Index
from byhand.tracing.passes import Pass
from byhand.tracing.slopes import in_float64

STEP = 1e-6  # relative to max(1, |x|), in float64


def central_difference(trace: Pass, d_result: Any, name: str, index: Index) -> float:
    """Return the slope of sum(d_result * result) along one element, by two passes in float64."""
    h = STEP * max(1.0, abs(float(trace.tensor(name).data[index])))
    (d,) = in_float64([np.asarray(d_result)])
    ahead, behind = (float((d * recomputed(trace, name, index, step)).sum()) for step in (h, -h))
    return (ahead - behind) / (2 * h)


def recomputed(trace: Pass, name: str, index: Index, step: float) -> Any:
    """Return the result of the pass with `step` added to one element of one of its tensors.

    What depends on it is computed anew in float64; everything else is as it was in the pass.
    """
    changed = trace.tensor(name)
    array = np.array(changed.data, np.float64 if changed.data.dtype.kind in "fO" else None)  # the only copy
    array[index] += step
    anew: dict[int, Any] = {id(changed): array}
    for application in trace.applications:
        if any(id(tensor) in anew for tensor in application.inputs) and not anew.keys() >= set(
            map(id, application.results)
        ):
            inputs = [anew.get(id(tensor), np.asarray(tensor.data)) for tensor in application.inputs]
            result, _ = application.equation.forward(*in_float64(inputs), **application.static)
            for tensor, array in zip(application.results, as_tuple(result), strict=True):
                anew.setdefault(id(tensor), array)
    return anew.get(id(trace.result), trace.result.data)
