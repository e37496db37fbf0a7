"""Interpreters: the current one decides what applying an equation does, and nothing else does.

`Evaluate` computes; `Record` also leaves a `Node`. Tracing, planning and compiling are subclasses that override the
same two methods. `scope` gives applications their dotted names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from byhand.engine.tensor import Node, Tensor

if TYPE_CHECKING:
    from byhand.engine.equation import Composite, Equation


class Evaluate:
    """Compute the result and keep nothing else; the base of every interpreter."""

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Run the forward half; drop what it saved."""
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
        if not any(t.requires_grad for t in inputs):
            return _wrap(result, name, None)
        results = result if isinstance(result, tuple) else (result,)
        specs = tuple((r.shape, r.dtype) for r in results)
        return _wrap(result, name, Node(equation, inputs, static, saved, name, specs))


def _wrap(result: Any, name: str, node: Node | None) -> Any:
    """Make a tensor of each result; several results are named `name.0`, `name.1`, ..."""
    recorded = node is not None
    if isinstance(result, tuple):
        return tuple(Tensor(r, recorded, f"{name}.{i}" if name else "", node, i) for i, r in enumerate(result))
    return Tensor(result, recorded, name, node)


_RECORD = Record()
_interpreter: ContextVar[Evaluate] = ContextVar("interpreter", default=_RECORD)
_scope: ContextVar[str] = ContextVar("scope", default="")


def current() -> Evaluate:
    """Return the interpreter of this context."""
    return _interpreter.get()


@contextmanager
def interpreting(interpreter: Evaluate) -> Iterator[Evaluate]:
    """Apply equations by this interpreter inside the `with` block."""
    token = _interpreter.set(interpreter)
    try:
        yield interpreter
    finally:
        _interpreter.reset(token)


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without recording: results require no gradient and nothing is saved."""
    with interpreting(Evaluate()):
        yield


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Prefix the names given inside the `with` block: scope("blocks.0") makes `ln_1` into `blocks.0.ln_1`."""
    token = _scope.set(full_name(name) or _scope.get())
    try:
        yield
    finally:
        _scope.reset(token)


def full_name(name: str) -> str:
    """Return the name under the current scope; an empty name stays empty."""
    prefix = _scope.get()
    return f"{prefix}.{name}" if prefix and name else name
