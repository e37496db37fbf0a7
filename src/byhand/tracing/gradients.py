"""The backward pass: the gradient of every tensor by name, and the arithmetic of each of its elements.

Each use of a tensor adds the equation's `gradient_terms`, or without them cotangents times slopes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.engine import BackwardStep, Tensor, Term, walk_back
from byhand.engine.arrays import namespace
from byhand.engine.operations import operate
from byhand.engine.rows import values
from byhand.engine.terms import Index, addends, cotangent_sum, element_name, moved, number, total
from byhand.errors import ExplainError
from byhand.tracing.answers import Answer, GradientTerms, addends_of
from byhand.tracing.differences import central_difference
from byhand.tracing.elements import Origin, origin
from byhand.tracing.passes import Pass
from byhand.tracing.slopes import slopes

ROUNDING = 64  # times precision times the addends' magnitudes: the largest residue of addends that cancel


def gradient_term(trace: Pass, step: BackwardStep, slot: int, index: Index) -> Term:
    """Return one application's contribution to the gradient of an element of its input number `slot`.

    The leaves are numbered in (*d_results, *saved).
    """
    term = step.gradient_term(slot, index)
    if term is not None:
        return term
    results = trace.result_names(step.node)
    target = element_name(trace.name(step.node.inputs[slot]), index)

    def share(which: int, place: Index, slope: Any) -> tuple[Term, Term]:
        here = element_name(results[which], place)
        cotangent = Term(f"∂{here}", float(step.d_results[which][place]), source=(which, place))
        return cotangent, number(slope, f"∂{here}/∂{target}")

    return cotangent_sum(share(*found) for found in slopes(step, slot, index))


def passed_back(step: BackwardStep, tensor: Tensor) -> Any:
    """Return one application's contribution to the gradient of an input, which it may read twice, as in x + x."""
    first, *others = [
        d for t, d in zip(step.node.inputs, step.d_inputs, strict=True) if t is tensor and d is not None
    ]
    return sum(others, first)


@dataclass(frozen=True, eq=False)
class Gradients:
    """The backward steps, last application first, and d result / d tensor by name."""

    trace: Pass
    steps: tuple[BackwardStep, ...]
    by_name: Mapping[str, Any]

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

    def terms(self, name: str, index: Sequence[int]) -> list[GradientTerms]:
        """Return the arithmetic of one element of a gradient: its value is the sum of these terms.

        The result itself, whose gradient is given, has none. Raises ExplainError if there is no such element, or it
        has no gradient.
        """
        tensor, place = self._element(name, index)
        return [
            self._use(step, slot, place)
            for step in self.uses(tensor)
            for slot, t in enumerate(step.node.inputs)
            if t is tensor
        ]

    def answer(self, name: str, index: Sequence[int]) -> Answer:
        """Return the derivative of the result with respect to one element, and its arithmetic over all uses.

        Raises ExplainError if there is no such element, or it has no gradient.
        """
        tensor, place = self._element(name, index)
        value = float(self.by_name[name][place])
        if tensor is self.trace.result:
            return Answer(name=name, index=place, value=value, gradient=True, facts={"code": "loss"})
        parts: list[Term] = []
        origins: list[Origin] = []
        arrays: list[Any] = []
        uses = self.terms(name, place)
        for use in uses:
            parts.append(moved(use.term, len(origins)) if origins else use.term)
            origins += use.origins
            arrays += use.arrays
        term = total(parts)
        return Answer(
            name=name,
            index=place,
            value=value,
            gradient=True,
            equations=tuple(dict.fromkeys(use.equation for use in uses)),
            term=term,
            origins=tuple(origins),
            arrays=tuple(arrays),
            uses=tuple(uses),
            facts=_facts(value, addends_of(term, each=True), float(np.finfo(self.trace.result.dtype).eps)),
        )

    def contribution(self, step: BackwardStep, tensor: Tensor, index: Index) -> Answer:
        """Return one application's contribution to the derivative with respect to an element of its input."""
        uses = [self._use(step, slot, index) for slot, t in enumerate(step.node.inputs) if t is tensor]
        terms = [use.term for use in uses]
        return Answer(
            name=self.trace.name(tensor),
            index=index,
            value=float(passed_back(step, tensor)[index]),
            gradient=True,
            equations=(step.node.equation.name,),
            term=terms[0] if len(terms) == 1 else total(part for term in terms for part in addends(term)),
            origins=uses[0].origins,
            arrays=uses[0].arrays,
        )

    def central_difference(self, name: str, index: Sequence[int]) -> float:
        """Return (result(x + h) - result(x - h)) / 2h for one element x, computed in float64.

        A result with several elements is replaced by its inner product with the initial cotangent.
        """
        _, place = self._element(name, index)
        return central_difference(self.trace, self.by_name[self.trace.name(self.trace.result)], name, place)

    def _element(self, name: str, index: Sequence[int]) -> tuple[Tensor, Index]:
        self.array(name)
        return self.trace.tensor(name), self.trace.resolved(name, index)

    def _use(self, step: BackwardStep, slot: int, index: Index) -> GradientTerms:
        node, results = step.node, self.trace.result_names(step.node)
        known = {id(t.data): origin(self.trace.name(t)) for t in node.inputs}
        known |= {id(self.trace.tensor(name).data): origin(name) for name in results}
        saved = (known.get(id(x), {"saved_by": results[0], "saved": k}) for k, x in enumerate(node.saved))
        origins = (*(origin(name, gradient=True) for name in results), *saved)
        term = gradient_term(self.trace, step, slot, index)
        arrays = (*step.d_results, *node.saved)
        return GradientTerms(results, node.equation.name, node.equation.inputs[slot].name, term, origins, arrays)


def _facts(value: float, addends: Sequence[Term], precision: float) -> dict[str, str]:
    """Return a fact if all addends are zero, or if they cancel."""
    scale = operate("sum", abs(np.asarray(values(addends))))
    if scale == 0:
        return {"code": "zero"}
    return {"code": "cancelled"} if abs(value) <= ROUNDING * precision * scale else {}
