"""The way back through a pass: the gradient of every tensor by name, and the arithmetic of each of its elements.

A vjp is linear in the cotangent, so each element of a result contributes its cotangent times its slope. An equation
whose derivative is more than such a sum says it in `gradient_terms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byhand.engine import BackwardStep, Tensor, Term, walk_back
from byhand.engine.arrays import namespace
from byhand.engine.terms import Index, named, number, product, total
from byhand.errors import ExplainError
from byhand.tracing.differences import central_difference
from byhand.tracing.passes import Pass
from byhand.tracing.slopes import slopes


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

    def as_json(self) -> dict[str, Any]:
        """Return plain values; numbers that are not finite stay so (`plain.py` writes them as text)."""
        numbers = {"cotangent": float(self.cotangent), "slope": float(self.slope), "value": self.value}
        return {"name": self.name, "index": list(self.index), **numbers}


def contributions(step: BackwardStep, tensor: Tensor, index: Index, names: Sequence[str]) -> Iterator[Contribution]:
    """Yield what one use of a tensor adds to the gradient of one of its elements; zero cotangents add nothing.

    names are those of the application's results.
    """
    slots = [k for k, t in enumerate(step.node.inputs) if t is tensor]
    if slots:
        for which, place, slope in slopes(step, slots, index):
            yield Contribution(names[which], place, step.d_results[which][place], slope)


@dataclass(frozen=True, slots=True)
class GradientTerms:
    """What one use of a tensor adds to the gradient of one of its elements, as arithmetic.

    results          names of what the application made
    equation, input  the equation, and which of its inputs the tensor is
    origins          what each number of a `source` in the term is called in JSON: a tensor or its gradient by name,
                     or the array number `saved` of those that the application of `saved_by` saved
    """

    results: tuple[str, ...]
    equation: str
    input: str
    term: Term
    origins: tuple[Mapping[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values; numbers that are not finite stay so (`plain.py` writes them as text)."""
        use = {"results": list(self.results), "equation": self.equation, "input": self.input}
        return {**use, "value": self.term.value, "terms": self.term.as_json(self.origins)}


@dataclass(frozen=True, eq=False)
class Gradients:
    """The backward steps, the last application first, and d result / d tensor by name."""

    trace: Pass
    steps: tuple[BackwardStep, ...]
    by_name: dict[str, Any]

    @classmethod
    def of(
        cls, trace: Pass, d_result: Any = None, settle: Callable[[BackwardStep], tuple[Any, ...]] | None = None
    ) -> Gradients:
        """Walk back from the result with its cotangent, 1 everywhere if not given; `settle` as in `walk_back`."""
        result = trace.result
        d = namespace(result.data).ones(result.shape, dtype=result.dtype) if d_result is None else d_result
        steps, by_name = tuple(walk_back(result, d, settle)), {trace.name(result): d}
        for step in steps:
            for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
                if d is not None:
                    name = trace.name(tensor)
                    by_name[name] = by_name[name] + d if name in by_name else d
        return cls(trace, steps, by_name)

    def array(self, name: str) -> Any:
        """Return the gradient of a tensor; ExplainError if it has none."""
        tensor = self.trace.tensor(name)
        if name not in self.by_name:
            given = "not used by the loss" if tensor.requires_grad else "given, not learned"
            raise ExplainError(f"{name} has no gradient: it is {given}. Ask for a parameter or an activation.")
        return self.by_name[name]

    def uses(self, tensor: Tensor) -> list[BackwardStep]:
        """Return the steps of the applications that read the tensor."""
        return [step for step in self.steps if any(t is tensor for t in step.node.inputs)]

    def contributions(self, name: str, index: Sequence[int]) -> Iterator[Contribution]:
        """Return what each use of a tensor adds to the gradient of one of its elements, number by number.

        Raises ExplainError if there is no such element, or it has no gradient.
        """
        tensor, place = self._element(name, index)
        return (
            contribution
            for step in self.uses(tensor)
            for contribution in contributions(step, tensor, place, self.trace.result_names(step.node))
        )

    def terms(self, name: str, index: Sequence[int]) -> list[GradientTerms]:
        """Return the arithmetic of one element of a gradient: its value is the sum of these terms.

        Of the result itself, whose gradient is given, there are none. Raises as `contributions` does.
        """
        tensor, place = self._element(name, index)
        return [
            self._use(step, slot, place)
            for step in self.uses(tensor)
            for slot, t in enumerate(step.node.inputs)
            if t is tensor
        ]

    def central_difference(self, name: str, index: Sequence[int]) -> float:
        """Return (result(x + h) - result(x - h)) / 2h for one element x, computed in float64 on the spot.

        A result that is no single number counts as its sum with the cotangents that the walk back began with.
        """
        _, place = self._element(name, index)
        return central_difference(self.trace, self.by_name[self.trace.name(self.trace.result)], name, place)

    def _element(self, name: str, index: Sequence[int]) -> tuple[Tensor, Index]:
        self.array(name)
        return self.trace.tensor(name), self.trace.resolved(name, index)

    def _use(self, step: BackwardStep, slot: int, index: Index) -> GradientTerms:
        """Return the derivative's own arithmetic where the equation has it, else cotangents times slopes."""
        node, results = step.node, self.trace.result_names(step.node)
        cotangents = [origin(name, grad=True) for name in results]
        inputs = [origin(self.trace.name(tensor)) for tensor in node.inputs]
        term = step.gradient_term(slot, index)
        if term is None:
            term, origins = self._sum(step, slot, index), [*inputs, *cotangents]
        else:
            known = {id(t.data): o for t, o in zip(node.inputs, inputs, strict=True)}
            known |= {id(self.trace.tensor(name).data): origin(name) for name in results}
            of_saved = [{"saved_by": results[0], "saved": k} for k in range(len(node.saved))]
            origins = [*cotangents, *(known.get(id(x), o) for x, o in zip(node.saved, of_saved, strict=True))]
        return GradientTerms(results, node.equation.name, node.equation.inputs[slot].name, term, tuple(origins))

    def _sum(self, step: BackwardStep, slot: int, index: Index) -> Term:
        """Return the sum of cotangents times slopes; inputs are numbered first, then the results' cotangents."""
        node, results = step.node, self.trace.result_names(step.node)
        inputs, target = tuple(t.data for t in node.inputs), named(self.trace.name(node.inputs[slot]), index)
        parts = []
        for which, place, slope in slopes(step, [slot], index):
            here, d = named(results[which], place), float(step.d_results[which][place])
            written = node.equation.slope_terms
            term = written(place, inputs, slot, index, **node.static) if written else None
            cotangent = Term(f"∂{here}", d, source=(len(inputs) + which, place))
            parts.append(product((cotangent, term or number(slope, f"∂{here}/∂{target}"))))
        return total(parts)


def origin(name: str, grad: bool = False) -> dict[str, Any]:
    """Return what JSON calls a tensor, or the gradient of one."""
    return {"name": name, "gradient": grad}
