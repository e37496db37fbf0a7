"""Cost: the operations of each call, from the equations that its group computes.

A call that multiplies matrices says its own number. All else that a group's equations compute is shared out among its
other calls by the bytes that they touch: loops of this kind take as long as their reading and writing.
"""

from __future__ import annotations

from collections.abc import Sequence

from byhand.engine import Node
from byhand.runtimes.loops.lowering.ir import Call


def matrix_products(node: Node) -> tuple[int, int]:
    """Return the operations of an application's matrix products, forward and of the derivative."""
    products = node.equation.products
    return products(*(t.shape for t in node.inputs), **node.static) if products else (0, 0)


def beside_products(node: Node) -> tuple[int, int]:
    """Return an application's other operations, forward and of the derivative."""
    flops = node.equation.flops
    return flops(*(t.shape for t in node.inputs), **node.static) if flops else (0, 0)


def assign(nodes: Sequence[Node], ahead: list[Call], back: list[Call] | None) -> None:
    """Give a group's calls their operations; `back` is None where there is no way back.

    Where one direction has no calls, since those of the other do its work too, they get its operations.
    """
    costs = [beside_products(node) for node in nodes]
    forward, backward = sum(f for f, _ in costs), sum(b for _, b in costs)
    if back is None:
        _share(forward, ahead)
    elif not ahead or not back:
        _share(forward + backward, ahead or back)
    else:
        _share(forward, ahead)
        _share(backward, back)


def _share(operations: int, calls: list[Call]) -> None:
    shared = [call for call in calls if call.shared]
    total = sum(call.bytes for call in shared)
    for call in shared:
        call.flops = operations * call.bytes // max(1, total)
