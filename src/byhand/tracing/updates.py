"""The next update of a parameter: its trace, and the arithmetic of each element, from clipping to the new value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.engine.terms import Index, Term, element, named, number, product, ratio
from byhand.errors import ExplainError
from byhand.optim import Optimizer, as_tuple
from byhand.tracing.answers import Answer, origin
from byhand.tracing.passes import resolved
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application
from byhand.update_rules import UpdateRule, state_of, updates

UPDATE = "update"  # of a parameter: its change
PARTS = ("theta", *dict.fromkeys(symbol.name for update in updates() for symbol in state_of(update)), UPDATE)
GRADIENT = 1  # number of the input g


def parts_of(rule: UpdateRule) -> tuple[str, ...]:
    """Return what can be asked of a parameter's update."""
    return ("theta", *rule.state, UPDATE)


def update_trace(optimizer: Optimizer, name: str, parameter: Tensor, gradient: Any) -> Trace:
    """Return the trace of a parameter's next update by a gradient, clipped or not; nothing changes.

    The results are called `NAME.theta` and, for each array of state, as `NAME.m`; their inputs `NAME`,
    `NAME.gradient`, `NAME.m before` and so on, `lr`, and `t` if the update reads it.
    """
    rule, inputs = optimizer.application(name, parameter, gradient)
    equation, static = rule.equation, dict(rule.static)
    results, _ = equation.forward(*inputs.values(), **static)
    names = {"theta": name, "g": f"{name}.gradient"} | {kind: f"{name}.{kind} before" for kind in rule.state}
    tensors = tuple(Tensor(x, name=names.get(letter, letter)) for letter, x in inputs.items())
    made = tuple(map(Tensor, as_tuple(results)))
    return Trace.collect(made[0], (Application(0, f"{name}.{equation.name}", equation, tensors, static, made),))


@dataclass(frozen=True)
class Clipping:
    """Scales gradients of this global norm down to `limit`, if that is above 0 and smaller."""

    norm: float
    limit: float

    @classmethod
    def of(cls, gradients: Iterable[Any], limit: float) -> Clipping:
        """Return the clipping of these gradients."""
        return cls(math.sqrt(math.fsum(float((d * d).sum()) for d in gradients)), limit)

    @property
    def acts(self) -> bool:
        """Whether it scales the gradients."""
        return bool(self.limit) and self.norm > self.limit

    def clipped(self, gradient: Any) -> Any:
        """Return a gradient after clipping."""
        return gradient * (self.limit / self.norm) if self.acts else gradient


@dataclass(frozen=True, eq=False)
class ParameterUpdate:
    """The optimizer's next step for one parameter; `gradient` is the parameter's before clipping."""

    parameter: str
    tensor: Tensor
    gradient: Any
    clipping: Clipping
    optimizer: Optimizer

    def answer(self, part: str, index: Sequence[int]) -> Answer:
        """Return one element of the new parameter (theta), its change (update), or its state, and its arithmetic.

        Raises ExplainError if there is no such element.
        """
        name, parts = f"{self.parameter}.{part}", parts_of(self._rule)
        if part not in parts:
            *others, last = (f".{other}" for other in parts)
            raise ExplainError(
                f"{name} does not exist: {self._rule.equation.name} keeps no {part}. "
                f"Ask for {self.parameter}{', '.join(others)} or {last}."
            )
        index = resolved(name, index, self.tensor.shape)
        result = self.trace.name(self._application.results[self._number(part)])
        answer = self.trace.answer(result, index)  # the update is the last part of theta
        before, _, *others = answer.origins
        term, value = answer.term, answer.value
        if part == UPDATE and term:  # in float64: a difference of close numbers
            term, value = term.parts[1], float(self._moved()[index])
        if self.clipping.acts and term:
            term = self._unclipped(term, index)
        return replace(
            answer,
            name=name,
            index=index,
            value=value,
            term=term,
            origins=(before, origin(self.parameter, gradient=True), *others),
            beside=self._beside(index) if part in ("theta", UPDATE) else (),
            facts=self._facts(),
        )

    def array(self, part: str) -> np.ndarray:
        """Return the whole array whose elements `answer` explains."""
        return self._moved() if part == UPDATE else np.asarray(self._application.results[self._number(part)].data)

    @property
    def _rule(self) -> UpdateRule:
        return self.optimizer.rule(self.parameter, self.tensor)

    def _number(self, part: str) -> int:
        """Return the number of the equation's result that a part belongs to; the change is the last part of theta."""
        parts = parts_of(self._rule)
        return parts.index(part) % (len(parts) - 1)

    @cached_property
    def trace(self) -> Trace:
        """The optimizer's next step for the parameter, by the clipped gradient."""
        return update_trace(self.optimizer, self.parameter, self.tensor, self.clipping.clipped(self.gradient))

    @property
    def _application(self) -> Application:
        return self.trace.applications[0]

    def _moved(self) -> np.ndarray:
        """Return the change of each element, computed in float64."""
        application, optimizer = self._application, self.optimizer
        numbers = {"lr": optimizer.rate_of(self.parameter, self.tensor), "t": optimizer.t + 1}
        inputs = [
            numbers[tensor.name] if tensor.name in numbers else np.asarray(tensor.data, dtype=np.float64)
            for tensor in application.inputs
        ]
        return as_tuple(application.equation.forward(*inputs, **application.static)[0])[0] - inputs[0]

    def _facts(self) -> dict[str, Any]:
        """Return the step, its learning rate, and the clipping if it acts."""
        facts = {
            "code": "update",
            "step": self.optimizer.t + 1,
            "lr": self.optimizer.rate_of(self.parameter, self.tensor),
        }
        clipped = {"gradient_norm": self.clipping.norm, "clipped_to": self.clipping.limit}
        return facts | (clipped if self.clipping.acts else {})

    def _unclipped(self, term: Term, index: Index) -> Term:
        """Return the term with its gradient written as the whole gradient times the clipping factor."""
        if term.source == (GRADIENT, index):
            factor = ratio(number(self.clipping.limit), number(self.clipping.norm))
            label = f"∂loss/∂{named(self.parameter, index)}"
            whole = replace(term, label=label, value=float(self.gradient[index]))
            return replace(product((whole, factor), named("g", index)), value=term.value)
        return replace(term, parts=tuple(self._unclipped(part, index) for part in term.parts))

    def _beside(self, index: Index) -> tuple[Term, ...]:
        """Return the numbers on the way that the update's arithmetic does not spell out, the clipped g first."""
        application = self._application
        if application.equation.beside is None:
            return ()
        inputs = tuple(np.asarray(tensor.data) for tensor in application.inputs)
        terms = application.equation.beside(index, inputs, **application.static)
        if not self.clipping.acts:
            return terms
        own = element(inputs, GRADIENT, index, "g")
        return tuple(self._unclipped(term, index) for term in (own, *terms))
