"""The trace of one parameter's next update."""

from __future__ import annotations

from typing import Any

from byhand.engine import Tensor
from byhand.optim import AdamW
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application


def update_trace(optimizer: AdamW, name: str, parameter: Tensor, gradient: Any) -> Trace:
    """Return the trace of a parameter's next update by a gradient, clipped or not; nothing changes.

    The results are called `NAME.theta`, `NAME.m` and `NAME.v` (which Muon lacks), their inputs `NAME`,
    `NAME.gradient`, `NAME.m before`, `NAME.v before`, `lr` and `t`.
    """
    equation, inputs, static = optimizer.application(name, parameter, gradient)
    results, _ = equation.forward(*inputs.values(), **static)
    names = {"theta": name, "g": f"{name}.gradient", "m": f"{name}.m before", "v": f"{name}.v before"}
    tensors = tuple(Tensor(x, name=names.get(letter, letter)) for letter, x in inputs.items())
    made = tuple(map(Tensor, results))
    return Trace.collect(made[0], (Application(0, f"{name}.{equation.name}", equation, tensors, static, made),))
