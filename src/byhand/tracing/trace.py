"""Watching a computation: every application in order, every result by its dotted name.

`Watch` records as the engine does and keeps the tensors; `Nudge` computes the same, with one element of one result
moved, which is what a central difference needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from byhand.engine import Equation, Evaluate, Node, Record, Tensor, interpreting
from byhand.engine.arrays import namespace
from byhand.engine.interpreter import full_name
from byhand.engine.terms import Index


@dataclass(frozen=True, eq=False)
class Application:
    """An equation as it was applied: to what, with which settings, with which results, as number so-and-so."""

    number: int
    name: str
    equation: Equation
    inputs: tuple[Tensor, ...]
    static: dict[str, Any]
    results: tuple[Tensor, ...]

    def result_names(self) -> tuple[str, ...]:
        """Return the name of each result: the application's own, or `attn.q`, `attn.k`, `attn.v` for three."""
        name = self.name or f"{self.equation.name}.{self.number}"
        if len(self.results) == 1:
            return (name,)
        place, dot, _ = name.rpartition(".")
        return tuple(f"{place}{dot}{letter.strip()}" for letter in self.equation.result.name.split(","))


@dataclass(frozen=True, eq=False)
class Watched:
    """A finished computation.

    made    by name: which application made the tensor, and as which of its results
    leaves  by name: tensors that nothing made, such as parameters and tokens
    """

    applications: tuple[Application, ...]
    made: dict[str, tuple[Application, int]]
    leaves: dict[str, Tensor]
    names: dict[int, str] = field(repr=False)

    def tensor(self, name: str) -> Tensor:
        """Return the tensor of this name."""
        if name in self.leaves:
            return self.leaves[name]
        application, which = self.made[name]
        return application.results[which]

    def result_names(self, node: Node) -> tuple[str, ...]:
        """Return the names of the results of a recorded application."""
        results = next(a.results for a in self.applications if a.results[0].node is node)
        return tuple(map(self.name, results))

    def name(self, tensor: Tensor) -> str:
        """Return the name of a tensor of this computation."""
        return self.names[id(tensor)]


class Watch(Record):
    """Record, and keep each application."""

    def __init__(self) -> None:
        self.applications: list[Application] = []

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Record the application and remember it."""
        result = super().apply(equation, inputs, static, name)
        results = result if isinstance(result, tuple) else (result,)
        number = len(self.applications)
        self.applications.append(Application(number, full_name(name), equation, inputs, static, results))
        return result


class Nudge(Evaluate):
    """Compute with `step` added to one element of one result of the application with this number."""

    def __init__(self, number: int, which: int, index: Index, step: float) -> None:
        self.target, self.which, self.index, self.step = number, which, index, step
        self.count = 0

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Compute, and move the element if this is the application."""
        result = super().apply(equation, inputs, static, name)
        if self.count == self.target:
            tensor = result[self.which] if isinstance(result, tuple) else result
            tensor.data = moved(tensor.data, self.index, self.step)
        self.count += 1
        return result


def moved(x: Any, index: Index, step: float) -> Any:
    """Return a copy of the array with `step` added to one element."""
    copy = namespace(x).asarray(x, copy=True)
    copy[index] += step
    return copy


def watch(compute: Callable[[], Tensor]) -> tuple[Tensor, Watched]:
    """Run a computation; return its result and everything that happened on the way."""
    with interpreting(Watch()) as interpreter:
        result = compute()
    return result, collect(tuple(interpreter.applications))  # pyright: ignore[reportAttributeAccessIssue]


def collect(applications: tuple[Application, ...]) -> Watched:
    """Name every tensor of these applications."""
    made: dict[str, tuple[Application, int]] = {}
    leaves: dict[str, Tensor] = {}
    names: dict[int, str] = {}
    for application in applications:
        for tensor, symbol in zip(application.inputs, application.equation.inputs, strict=False):
            if id(tensor) not in names:
                names[id(tensor)] = name = _unused(tensor.name or symbol.name, leaves, made)
                leaves[name] = tensor
        for which, (name, tensor) in enumerate(zip(application.result_names(), application.results, strict=True)):
            names[id(tensor)] = name = _unused(name, leaves, made)
            made[name] = (application, which)
    return Watched(applications, made, leaves, names)


def _unused(name: str, *taken: dict[str, Any]) -> str:
    """Return the name, with a number behind it if several tensors go by it."""
    number, candidate = 2, name
    while any(candidate in names for names in taken):
        number, candidate = number + 1, f"{name}.{number}"
    return candidate
