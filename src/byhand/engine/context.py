"""Context variables: the current interpreter, and the scope that prefixes names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar


class Interpreter(Protocol):
    """Decides how equations are applied; `Evaluate` is the base class."""

    def interpret(self, statement: Any, inputs: tuple[Any, ...], static: dict[str, Any], name: str) -> Any:
        """Apply an equation or a composite to tensors or arrays."""
        ...


Kind = TypeVar("Kind", bound=Interpreter)
_interpreter: ContextVar[Interpreter | None] = ContextVar("interpreter", default=None)
_scope: ContextVar[str] = ContextVar("scope", default="")
_whole_sums: ContextVar[bool] = ContextVar("whole_sums", default=False)
_usual: list[Interpreter] = []


def use_by_default(interpreter: Interpreter) -> None:
    """Set the default interpreter; importing the engine sets `Record`."""
    _usual[:] = [interpreter]


def current() -> Interpreter:
    """Return the interpreter of this context."""
    return _interpreter.get() or _usual[0]


@contextmanager
def interpreting(interpreter: Kind) -> Iterator[Kind]:
    """Switch to this interpreter inside the `with` block."""
    token = _interpreter.set(interpreter)
    try:
        yield interpreter
    finally:
        _interpreter.reset(token)


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


def sums_are_whole() -> bool:
    """Return whether terms keep addends that are zero here but may not be for other inputs."""
    return _whole_sums.get()


@contextmanager
def whole_sums() -> Iterator[None]:
    """Keep zero addends of gradients inside the `with` block."""
    token = _whole_sums.set(True)
    try:
        yield
    finally:
        _whole_sums.reset(token)
