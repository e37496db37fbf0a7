"""Interpreters: the current one decides how an equation is applied.

`Evaluate` computes; `Record` also leaves a `Node`. Tracing, planning and compiling are subclasses that override the
same two methods, `apply` and `compose`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from byhand.engine.arrays import as_tuple
from byhand.engine.context import full_name, interpreting, scope, use_by_default
from byhand.engine.equation import Composite, Equation, Statement
from byhand.engine.node import Node
from byhand.engine.tensor import Tensor, as_tensor


class Evaluate:
    """Compute the result and keep nothing else; the base of every interpreter."""

    def interpret(self, statement: Statement, inputs: tuple[Any, ...], static: dict[str, Any], name: str) -> Any:
        """Apply to tensors or arrays; None stands for an optional input of a composite."""
        if isinstance(statement, Composite):
            return self.compose(statement, tuple(x if x is None else as_tensor(x) for x in inputs), static, name)
        assert isinstance(statement, Equation)
        return self.apply(statement, tuple(map(as_tensor, inputs)), static, name)

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Run the forward half; drop the saved arrays."""
        result, _ = equation.forward(*[t.data for t in inputs], **static)
        return _wrap(result, full_name(name), None)

    def compose(self, composite: Composite, inputs: tuple[Any, ...], static: dict[str, Any], name: str) -> Tensor:
        """Run the composition, its parts named under `name`."""
        with scope(name):
            return composite.compose(*inputs, **static)


class Record(Evaluate):
    """Compute the result and, if an input requires a gradient, leave a node for the backward pass."""

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Run the forward half and record the application."""
        result, saved = equation.forward(*[t.data for t in inputs], **static)
        name = full_name(name)
        if not any(map(self.follows, inputs)):
            return _wrap(result, name, None)
        specs = tuple((r.shape, r.dtype) for r in as_tuple(result))
        node = Node(equation, inputs, static, saved, name, specs)
        return _wrap(result, name, node, any(t.requires_grad for t in inputs))

    def follows(self, tensor: Tensor) -> bool:
        """Return whether applications to this tensor are recorded."""
        return tensor.requires_grad


def _wrap(result: Any, name: str, node: Node | None, learns: bool = False) -> Any:
    """Make a tensor of each result; several results are named `name.0`, `name.1`, ..."""
    if isinstance(result, tuple):
        return tuple(Tensor(r, learns, f"{name}.{i}" if name else "", node, i) for i, r in enumerate(result))
    return Tensor(result, learns, name, node)


use_by_default(Record())


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without recording: results require no gradients, nothing is saved."""
    with interpreting(Evaluate()):
        yield
