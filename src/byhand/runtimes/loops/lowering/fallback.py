"""The fallback: an equation without a kernel runs its two NumPy halves inside the plan.

Slower (Python, fresh arrays, the GIL), but right, and `byhand plan` shows it as `reference`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from byhand.engine import Node
from byhand.runtimes.loops.lowering.builder import Builder, Group
from byhand.runtimes.loops.lowering.ir import ADDS, Buffer, Operand


class Share(Protocol):
    """What a step in Python sees of the share that it runs in."""

    saved: dict[int, Any]
    adds: bool

    def array(self, buffer: Buffer) -> np.ndarray:
        """Return the buffer's numbers, in place."""
        ...


def match(node: Node, graph: Any) -> tuple[Node, ...] | None:
    """Any equation."""
    return (node,)


def forward(builder: Builder, group: Group) -> None:
    """Run the forward half and copy its results into the arena."""
    (node,) = group.nodes
    inputs = [builder.value(t) for t in node.inputs]
    results = [builder.result(node, i) for i in range(len(node.results))]

    def run(share: Share) -> None:
        made, share.saved[id(node)] = node.equation.forward(*map(share.array, inputs), **node.static)
        for buffer, array in zip(results, made if isinstance(made, tuple) else (made,), strict=True):
            share.array(buffer)[...] = array

    builder.emit_reference(node, inputs + results, run)


def backward(builder: Builder, group: Group) -> None:
    """Run the vjp and add what it gives to the inputs' cotangents.

    What the forward half saved may be views of inputs and results, so these stay in place until here.
    """
    (node,) = group.nodes
    d_results = [builder.cotangent(node, i) for i in range(len(node.results))]
    targets = [builder.gradient(t) if t.requires_grad else None for t in node.inputs]
    touched = d_results + [target[0] for target in targets if target]
    touched += [builder.value(t) for t in node.inputs] + [builder.result(node, i) for i in range(len(node.results))]

    def run(share: Share) -> None:
        given = [share.array(buffer) for buffer in d_results]
        d_result = tuple(given) if len(given) > 1 else given[0]
        d_inputs = node.equation.vjp(share.saved.pop(id(node)), d_result, **node.static)
        for target, d in zip(targets, d_inputs, strict=True):
            if target and d is not None:
                _put(share, *target, d)

    builder.emit_reference(node, touched, run)


def _put(share: Share, buffer: Buffer, adds: Operand, d: np.ndarray) -> None:
    place = share.array(buffer)
    if adds == 1 or (adds is ADDS and share.adds):
        place += d
    else:
        place[...] = d
