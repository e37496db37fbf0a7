"""The next update of a parameter: its trace, and the arithmetic of each element, from clipping to the new value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.engine.terms import Index, Term, element, named, number, product, ratio, total
from byhand.equations.muon import apart, together
from byhand.equations.orthogonalise import frobenius, orthogonalise
from byhand.errors import ExplainError
from byhand.optim import AdamW
from byhand.tracing.answers import Answer, origin
from byhand.tracing.passes import resolved
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application

RESULTS = ("theta", "m", "v")  # of the adamw equation; muon has the first two
PARTS = (*RESULTS, "update")
GRADIENT = 1  # number of the input g


def update_trace(optimizer: AdamW, name: str, parameter: Tensor, gradient: Any) -> Trace:
    """Return the trace of a parameter's next update by a gradient, clipped or not; nothing changes.

    The results are called `NAME.theta`, `NAME.m` and `NAME.v` (which Muon lacks), their inputs `NAME`,
    `NAME.gradient`, `NAME.m before`, `NAME.v before`, `lr` and `t`.
    """
    equation, inputs, static = optimizer.application(name, parameter, gradient)
    results, _ = equation.forward(*inputs.values(), **static)
    names = {"theta": name, "g": f"{name}.gradient", "m": f"{name}.m before", "v": f"{name}.v before"}
    tensors = tuple(Tensor(x, name=names.get(letter, letter)) for letter, x in inputs.items())
    made = tuple(map(Tensor, results))
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
    optimizer: AdamW

    def answer(self, part: str, index: Sequence[int]) -> Answer:
        """Return one element of m, v, the new parameter (theta), or its change (update), and its arithmetic.

        Raises ExplainError if there is no such element.
        """
        name, by_muon = f"{self.parameter}.{part}", len(self.trace.made) < len(RESULTS)
        if part == "v" and by_muon:
            raise ExplainError(
                f"{name} does not exist: Muon keeps no squares. Ask for {self.parameter}.m, .theta or .update."
            )
        index = resolved(name, index, self.tensor.shape)
        result = self.trace.name(self._application.results[PARTS.index(part) % len(RESULTS)])
        answer = self.trace.answer(result, index)  # the update is the last part of theta
        before, _, *others = answer.origins
        term, value = answer.term, answer.value
        if part == "update" and term:  # in float64: a difference of close numbers
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
            beside=self._direction(index) if by_muon and part != "m" else (),
            facts=self._facts(),
        )

    def array(self, part: str) -> np.ndarray:
        """Return the whole array whose elements `answer` explains."""
        return self._moved() if part == "update" else np.asarray(self._application.results[RESULTS.index(part)].data)

    @cached_property
    def trace(self) -> Trace:
        """The optimizer's next step for the parameter, by the clipped gradient."""
        return update_trace(self.optimizer, self.parameter, self.tensor, self.clipping.clipped(self.gradient))

    @property
    def _application(self) -> Application:
        return self.trace.applications[0]

    def _moved(self) -> np.ndarray:
        """Return the change of each element, computed in float64."""
        application = self._application
        doubles = [np.asarray(t.data, dtype=np.float64) for t in application.inputs if t.name not in ("lr", "t")]
        rate, step = self.optimizer.rate_of(self.parameter), self.optimizer.t + 1
        numbers = (rate, step)[: len(application.inputs) - len(doubles)]
        return application.equation.forward(*doubles, *numbers, **application.static)[0][0] - doubles[0]

    def _facts(self) -> dict[str, Any]:
        """Return the step, its learning rate, and the clipping if it acts."""
        facts = {"code": "update", "step": self.optimizer.t + 1, "lr": self.optimizer.rate_of(self.parameter)}
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

    def _direction(self, index: Index) -> tuple[Term, ...]:
        """Return n, |n| and an element of Muon's direction O, of which theta's arithmetic names the last alone."""
        application = self._application
        _, g, m = (np.asarray(t.data) for t in application.inputs[:3])
        mu, parts = application.static["momentum"], application.static["parts"]
        own, average = element((None, g, m), GRADIENT, index, "g"), element((None, g, m), 2, index, "m")
        if self.clipping.acts:
            own = self._unclipped(own, index)

        def blended(average: Term, label: str) -> Term:
            return total((product((number(mu), average)), product((number(1 - mu), own))), label)

        momentum = blended(average, "m'")
        whole = apart(mu * (mu * m + (1 - mu) * g) + (1 - mu) * g, parts)
        norm = together(np.broadcast_to(frobenius(whole), whole.shape), parts)[index]
        made = together(orthogonalise.forward(whole)[0], parts)[index]
        ahead = blended(momentum, "n")
        clipped = (own,) if self.clipping.acts else ()
        return *clipped, momentum, ahead, number(norm, "|n|"), number(made, named("O", index))
