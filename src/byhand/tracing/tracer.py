"""The interpreter of a traced pass, which keeps every application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.engine import Equation, Record, Tensor, Term
from byhand.engine.arrays import as_tuple
from byhand.engine.context import full_name
from byhand.engine.terms import Index


@dataclass(frozen=True, eq=False)
class Application:
    """One use of an equation: its index in the pass, its inputs, its static settings, its results."""

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
        return tuple(f"{place}{dot}{symbol.name}" for symbol in self.equation.results)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays of its inputs."""
        return tuple(tensor.data for tensor in self.inputs)

    def term(self, index: Index, which: int = 0) -> Term:
        """Return the arithmetic of one element of a result; leaves are numbered in the inputs."""
        asked = {"which": which} if len(self.results) > 1 else {}
        return self.equation.terms(index, self.arrays, self.results[which].data, **self.static, **asked)


class Tracer(Record):
    """Record like the engine, and keep each application in order."""

    def __init__(self) -> None:
        self.applications: list[Application] = []

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Record the application and keep it."""
        result = super().apply(equation, inputs, static, name)
        results = as_tuple(result)
        number = len(self.applications)
        self.applications.append(Application(number, full_name(name), equation, inputs, static, results))
        return result
