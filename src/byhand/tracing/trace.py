"""Trace: the values and applications of one pass with their names, and the way back from its result.

For any element, `terms` gives the arithmetic that made it, `backward().contributions` the parts of its gradient.
A vjp is linear in the cotangent, so each element of a result contributes its cotangent times its slope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from byhand.engine import BackwardStep, Node, Tensor, Term, interpreting, walk_back
from byhand.engine.arrays import namespace
from byhand.engine.terms import Index
from byhand.tracing.slopes import slopes
from byhand.tracing.tracer import Application, Tracer


@dataclass(frozen=True, slots=True)
class Contribution:
    """cotangent x slope, where the cotangent is d loss / d `name`[`index`]; numbers of the arrays' type."""

    name: str
    index: Index
    cotangent: Any
    slope: Any

    @property
    def value(self) -> float:
        """What it adds to the gradient."""
        return float(self.cotangent) * float(self.slope)


def contributions(step: BackwardStep, tensor: Tensor, index: Index, names: Sequence[str]) -> Iterator[Contribution]:
    """Yield what one use of a tensor adds to the gradient of one of its elements; zero cotangents add nothing.

    names are those of the application's results.
    """
    slots = [k for k, t in enumerate(step.node.inputs) if t is tensor]
    if slots:
        for which, place, slope in slopes(step, slots, index):
            yield Contribution(names[which], place, step.d_results[which][place], slope)


@dataclass(frozen=True, eq=False)
class Gradients:
    """The backward steps, the last application first, and d result / d tensor by name."""

    trace: Trace
    steps: tuple[BackwardStep, ...]
    by_name: dict[str, Any]

    @classmethod
    def collect(cls, root: str, d_root: Any, steps: tuple[BackwardStep, ...], trace: Trace) -> Gradients:
        """Sum the gradients of each tensor over the steps."""
        by_name = {root: d_root}
        for step in steps:
            for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
                if d is not None:
                    name = trace.name(tensor)
                    by_name[name] = by_name[name] + d if name in by_name else d
        return cls(trace, steps, by_name)

    def uses(self, tensor: Tensor) -> list[BackwardStep]:
        """Return the steps of the applications that read the tensor."""
        return [step for step in self.steps if any(t is tensor for t in step.node.inputs)]

    def contributions(self, name: str, index: Index) -> Iterator[Contribution]:
        """Yield what each use of a tensor adds to the gradient of one of its elements."""
        tensor = self.trace.tensor(name)
        for step in self.uses(tensor):
            yield from contributions(step, tensor, index, self.trace.result_names(step.node))


@dataclass(frozen=True, eq=False)
class Trace:
    """A finished pass.

    result  what the computation returned
    made    by name: the application that made the tensor, and the number of its result
    leaves  by name: tensors that no application made, such as parameters and tokens
    """

    result: Tensor
    applications: tuple[Application, ...]
    made: dict[str, tuple[Application, int]]
    leaves: dict[str, Tensor]
    names: dict[int, str] = field(repr=False)

    @classmethod
    def of(cls, compute: Callable[[], Tensor], tracer: Tracer | None = None) -> Trace:
        """Run a computation and return its trace."""
        tracer = tracer or Tracer()
        with interpreting(tracer):
            result = compute()
        return cls.collect(result, tuple(tracer.applications))

    @classmethod
    def collect(cls, result: Tensor, applications: tuple[Application, ...]) -> Trace:
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
        """Every array by name: leaves first, then results in the order in which they were computed."""
        return {name: tensor.data for name, tensor in self._tensors().items()}

    def tensor(self, name: str) -> Tensor:
        """Return the tensor of this name."""
        if name in self.leaves:
            return self.leaves[name]
        application, which = self.made[name]
        return application.results[which]

    def name(self, tensor: Tensor) -> str:
        """Return the name of a tensor of this pass."""
        return self.names[id(tensor)]

    def result_names(self, node: Node) -> tuple[str, ...]:
        """Return the names of the results of a recorded application."""
        return tuple(map(self.name, self._of_node[id(node)].results))

    def terms(self, name: str, index: Index) -> Term:
        """Return the arithmetic of one element that an application made."""
        application, which = self.made[name]
        asked = {"which": which} if len(application.results) > 1 else {}
        data = tuple(t.data for t in application.inputs)
        result = application.results[which].data
        return application.equation.terms(index, data, result, **application.static, **asked)

    def backward(
        self, d_result: Any = None, settle: Callable[[BackwardStep], tuple[Any, ...]] | None = None
    ) -> Gradients:
        """Walk back from the result with its cotangent, 1 everywhere if not given; `settle` as in `walk_back`."""
        xp = namespace(self.result.data)
        d = xp.ones(self.result.shape, dtype=self.result.dtype) if d_result is None else d_result
        return Gradients.collect(self.name(self.result), d, tuple(walk_back(self.result, d, settle)), self)

    def as_json(self) -> dict[str, Any]:
        """Return the pass without its numbers, ready for JSON: every tensor and every application by name."""
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


def _described(tensor: Tensor) -> dict[str, Any]:
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype), "requires_grad": tensor.requires_grad}


def _unused(name: str, *taken: dict[str, Any]) -> str:
    """Return the name, with a number appended if another tensor has it."""
    number, candidate = 2, name
    while any(candidate in names for names in taken):
        number, candidate = number + 1, f"{name}.{number}"
    return candidate
