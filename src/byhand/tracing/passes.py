"""A finished pass: its values and applications with their names, and the arithmetic of any value.

A negative place counts from the end, as in (0, -1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index as as_index
from typing import Any, Self

from byhand.engine import Node, Tensor, Term, interpreting
from byhand.engine.terms import Index, element_name
from byhand.errors import ExplainError, NoElementError
from byhand.tracing.answers import Answer
from byhand.tracing.elements import origin
from byhand.tracing.tracer import Application, Tracer


@dataclass(frozen=True, eq=False)
class Pass:
    """A finished pass.

    result  of the computation
    made    by name: the application that made the tensor, and the index of its result
    leaves  by name: tensors that no application made, such as parameters and tokens
    """

    result: Tensor
    applications: tuple[Application, ...]
    made: dict[str, tuple[Application, int]]
    leaves: dict[str, Tensor]
    names: dict[int, str] = field(repr=False)

    @classmethod
    def of(cls, compute: Callable[[], Tensor], tracer: Tracer | None = None) -> Self:
        """Run a computation and return its pass."""
        tracer = tracer or Tracer()
        with interpreting(tracer):
            result = compute()
        return cls.collect(result, tuple(tracer.applications))

    @classmethod
    def collect(cls, result: Tensor, applications: tuple[Application, ...]) -> Self:
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
        return cls(result, applications, made, leaves, names)

    @property
    def values(self) -> dict[str, Any]:
        """Every array by name: leaves first, then results in order of computation."""
        return {name: tensor.data for name, tensor in self._tensors().items()}

    def tensor(self, name: str) -> Tensor:
        """Return the tensor of this name; ExplainError if the pass has none."""
        if name in self.leaves:
            return self.leaves[name]
        if name not in self.made:
            from difflib import get_close_matches  # slow to import

            near = get_close_matches(name, [*self.leaves, *self.made], n=3, cutoff=0.4)
            hint = f"Nearest: {', '.join(near)}." if near else "`Trace.values` lists the names."
            raise ExplainError(f"nothing is called {name!r} in this pass. {hint}")
        application, which = self.made[name]
        return application.results[which]

    def resolved(self, name: str, index: Sequence[int]) -> Index:
        """Return an index of a tensor without negative places; NoElementError if there is no such element."""
        return resolved(name, index, tuple(self.tensor(name).shape))

    def name(self, tensor: Tensor) -> str:
        """Return the name of a tensor of this pass."""
        return self.names[id(tensor)]

    def result_names(self, node: Node) -> tuple[str, ...]:
        """Return the names of the results of a recorded application."""
        return tuple(map(self.name, self._of_node[id(node)].results))

    def saved(self, name: str) -> tuple[Any, ...]:
        """Return the arrays saved by the application that made this tensor."""
        node = self.tensor(name).node
        return node.saved if node else ()

    def terms(self, name: str, index: Sequence[int]) -> Term:
        """Return the arithmetic of one element that an application made; leaves are numbered in its inputs.

        Raises ExplainError if there is no such element, or no application made it.
        """
        place = self.resolved(name, index)
        if name not in self.made:
            raise ExplainError(f"no equation of this pass made {name}. Read `Trace.values[{name!r}]`.")
        application, which = self.made[name]
        return application.term(place, which)

    def answer(self, name: str, index: Sequence[int]) -> Answer:
        """Return one element, and its equation's arithmetic if an equation made it.

        Raises ExplainError if there is no such element.
        """
        place = self.resolved(name, index)
        tensor = self.tensor(name)
        value = float(tensor.data[place])
        if name in self.leaves:
            return Answer(
                name=name, index=place, value=value, facts={"code": "parameter" if tensor.requires_grad else "given"}
            )
        application, _ = self.made[name]
        return Answer(
            name=name,
            index=place,
            value=value,
            equations=(application.equation.name,),
            term=self.terms(name, place),
            origins=tuple(origin(self.name(t)) for t in application.inputs),
            arrays=application.arrays,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the pass without its values, ready for JSON: every tensor and application by name."""
        return {
            "result": self.name(self.result),
            "tensors": {name: _described(tensor) for name, tensor in self._tensors().items()},
            "applications": [self._application(application) for application in self.applications],
        }

    def _application(self, application: Application) -> dict[str, Any]:
        equation = application.equation
        return {
            "name": application.name,
            "equation": equation.name,
            "static": application.static,
            "inputs": {s.name: self.name(t) for s, t in zip(equation.inputs, application.inputs, strict=False)},
            "results": {s.name: self.name(t) for s, t in zip(equation.results, application.results, strict=True)},
        }

    def _tensors(self) -> dict[str, Tensor]:
        return self.leaves | {name: application.results[which] for name, (application, which) in self.made.items()}

    @cached_property
    def _of_node(self) -> dict[int, Application]:
        return {id(a.results[0].node): a for a in self.applications if a.results[0].node is not None}


def resolved(name: str, index: Sequence[int], shape: tuple[int, ...]) -> Index:
    """Return an index of the shape without negative places; NoElementError if there is no such element."""
    try:
        place = tuple(int(as_index(i)) for i in index)
    except TypeError:
        raise NoElementError(f"the index of {name} is {index!r}. Use integers, as in (0, 2).") from None
    last = f"{name} has shape {shape}. The last one is {element_name(name, tuple(n - 1 for n in shape))}."
    if shape and not place:
        raise NoElementError(f"give an index: {last}")
    if len(place) != len(shape) or any(not -n <= i < n for i, n in zip(place, shape, strict=True)):
        raise NoElementError(f"{element_name(name, place)} does not exist: {last}")
    return tuple(i % n for i, n in zip(place, shape, strict=True))


def _described(tensor: Tensor) -> dict[str, Any]:
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype), "requires_grad": tensor.requires_grad}


def _unused(name: str, *taken: dict[str, Any]) -> str:
    """Return the name, with a number appended if it is taken."""
    number, candidate = 2, name
    while any(candidate in names for names in taken):
        number, candidate = number + 1, f"{name}.{number}"
    return candidate
