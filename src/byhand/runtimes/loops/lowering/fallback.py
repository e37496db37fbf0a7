"""The fallback: an equation without a kernel runs its own forward and derivative, in NumPy, inside the plan.

Slower (Python, fresh arrays, the GIL), but right, and `byhand plan` shows it as `reference`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byhand.engine import Node, Tensor
from byhand.engine.backward import apply_vjp
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import ADDS, Buffer, Operand
from byhand.runtimes.loops.lowering.rules import Group, Rule

if TYPE_CHECKING:
    from byhand.runtimes.loops.lowering.plan import Share


def forward(builder: Builder, group: Group) -> None:
    """Run the forward half and copy its results into the arena."""
    (node,) = group.nodes
    inputs = [(_given(builder, t), t.shape) for t in node.inputs]
    results = [builder.result(node, i) for i in range(len(node.results))]
    trains = builder.trains

    def run(share: Share) -> None:
        arrays = [share.array(b).reshape(shape) if isinstance(b, Buffer) else b for b, shape in inputs]
        made, saved = node.equation.forward(*arrays, **node.static)
        if trains:
            share.saved[id(node)] = saved
        for buffer, array in zip(results, made if isinstance(made, tuple) else (made,), strict=True):
            share.array(buffer)[...] = array

    builder.emit_python(node, _products(node)[0], [b for b, _ in inputs if isinstance(b, Buffer)] + results, run)


def backward(builder: Builder, group: Group) -> None:
    """Run the vjp and add what it gives to the inputs' cotangents.

    The forward half may have saved views of inputs and results, so these stay in place until here.
    """
    (node,) = group.nodes
    d_results = [builder.cotangent(node, i) for i in range(len(node.results))]
    targets = [builder.gradient(t) if t.requires_grad else None for t in node.inputs]
    touched = d_results + [target[0] for target in targets if target]
    touched += [b for t in node.inputs if isinstance(b := _given(builder, t), Buffer)]
    touched += [builder.result(node, i) for i in range(len(node.results))]

    def run(share: Share) -> None:
        given = [share.array(buffer) for buffer in d_results]
        d_result = tuple(given) if len(given) > 1 else given[0]
        d_inputs = apply_vjp(node, share.saved.pop(id(node)), d_result)
        for target, d in zip(targets, d_inputs, strict=True):
            if target and d is not None:
                _put(share, *target, d)

    builder.emit_python(node, _products(node)[1], touched, run)


FALLBACK = Rule("reference", covers=(), kernel="", stages=(), forward=forward, backward=backward)


def _products(node: Node) -> tuple[int, int]:
    """Return the operations of an application's matrix products, forward and of the derivative."""
    products = node.equation.products
    return products(*(t.shape for t in node.inputs), **node.static) if products else (0, 0)


def _given(builder: Builder, tensor: Tensor) -> Buffer | np.ndarray:
    """Return a tensor's buffer, or the numbers of a constant: they may be of any type."""
    return tensor.data if builder.is_constant(tensor) else builder.value(tensor)


def _put(share: Share, buffer: Buffer, adds: Operand, d: np.ndarray) -> None:
    place = share.array(buffer)
    if adds == 1 or (adds == ADDS and share.adds):
        place += d
    else:
        place[...] = d
