r"""The reverse walk: from a result back to every leaf, applying each node's vjp once.

Equation    d_x = \sum_{\text{uses of } x} \mathrm{vjp}_{\text{use}}(d_{\text{result}})
Source      Griewank & Walther, Evaluating Derivatives, 2nd ed., section 3.2

Nothing is modified: cotangents are added into new arrays, and the recorded graph can be walked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from byhand.engine.arrays import Array, namespace, require
from byhand.engine.node import Node, Variable
from byhand.engine.terms import Index, Term
from byhand.errors import ShapeError


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """One application in the backward pass: each result's cotangent, and the vjp's gradient for each input."""

    node: Node
    d_results: tuple[Array, ...]
    d_inputs: tuple[Array | None, ...]

    def gradient_term(self, slot: int, index: Index) -> Term | None:
        """Return the equation's own term for one element of an input's gradient; None if it has none.

        Its leaves are numbered in (*d_results, *node.saved).
        """
        write, node = self.node.equation.gradient_terms, self.node
        return write(node.saved, self.d_results, slot, index, **node.static) if write else None


def apply_vjp(node: Node, saved: Any, d_result: Any) -> tuple[Array | None, ...]:
    """Return the gradient of each input of an application; ShapeError unless the vjp gives one for each."""
    d_inputs = node.equation.vjp(saved, d_result, **node.static)
    shapes = [None if d is None else d.shape for d in d_inputs]
    if len(shapes) != len(node.inputs) or any(
        s not in (None, t.shape) for s, t in zip(shapes, node.inputs, strict=True)
    ):
        wanted = ", ".join(str(t.shape) for t in node.inputs)
        raise ShapeError(
            f"{node.equation.name}: the vjp gives gradients of shapes {', '.join(map(str, shapes)) or 'none'} for "
            f"inputs of shapes {wanted}. It must give one for each input, of its shape; None for integers."
        )
    return d_inputs


def walk_back(
    root: Variable, d_root: Array, settle: Callable[[BackwardStep], tuple[Array | None, ...]] | None = None
) -> Iterator[BackwardStep]:
    """Yield every application that `root` depends on, the last one first, with its cotangents.

    `settle` may replace the vjp's `d_inputs` before they are propagated, such as by a lesson's exact zeros.
    """
    if root.node is None:
        return
    cotangents: dict[tuple[int, int], Array] = {(id(root.node), root.index): d_root}
    for node in reversed(applications(root)):
        given = [cotangents.pop((id(node), k), None) for k in range(len(node.results))]
        xp = namespace(next(d for d in given if d is not None))
        d_results = tuple(
            xp.zeros(shape, dtype=dtype) if d is None else d
            for d, (shape, dtype) in zip(given, node.results, strict=True)
        )
        d_result = d_results if len(node.results) > 1 else d_results[0]
        step = BackwardStep(node, d_results, apply_vjp(node, node.saved, d_result))
        d_inputs = settle(step) if settle else step.d_inputs
        for tensor, d in zip(node.inputs, d_inputs, strict=True):
            if d is not None and tensor.node is not None:
                key = (id(tensor.node), tensor.index)
                cotangents[key] = cotangents[key] + d if key in cotangents else d
        yield replace(step, d_inputs=d_inputs) if settle else step


def backward(root: Variable, d_root: Any = None) -> None:
    """Add the gradient of `root` to `.grad` of every leaf that requires one.

    d_root is the cotangent, of root's shape; optional for a scalar, where it is 1.
    Raises ShapeError if it has another shape, or if root was computed without recording.
    """
    require(root.requires_grad, "backward() from a tensor that records nothing; compute it outside no_grad()")
    xp = namespace(root.data)
    require(
        d_root is not None or root.shape == (),
        f"backward() from shape {root.shape} needs a cotangent of that shape: y.backward(d_y)",
    )
    d_root = xp.asarray(1.0 if d_root is None else d_root, dtype=root.dtype)
    require(d_root.shape == root.shape, f"cotangent {d_root.shape} for a tensor of shape {root.shape}")
    gradients: dict[int, Array] = {}
    leaves: dict[int, Variable] = {}
    if root.node is None:
        leaves[id(root)], gradients[id(root)] = root, d_root
    for step in walk_back(root, d_root):
        for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
            if d is not None and tensor.node is None and tensor.requires_grad:
                key = id(tensor)
                leaves[key] = tensor
                gradients[key] = gradients[key] + d if key in gradients else d
    for key, tensor in leaves.items():
        # Copied, since tensors may share an array: `x + y` gives both inputs the same cotangent.
        d = gradients[key]
        tensor.grad = xp.asarray(d, copy=True) if tensor.grad is None else tensor.grad + d


def applications(root: Variable) -> list[Node]:
    """Return every node that root depends on, in topological order (no recursion: graphs are deep)."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node | None, bool]] = [(root.node, False)]
    while stack:
        node, expanded = stack.pop()
        if node is None or (not expanded and id(node) in seen):
            continue
        if expanded:
            order.append(node)
            continue
        seen.add(id(node))
        stack.append((node, True))
        stack.extend((t.node, False) for t in reversed(node.inputs))
    return order
