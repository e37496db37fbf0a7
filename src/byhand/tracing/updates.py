"""A parameter's next update: its trace, and the arithmetic of each element, from clipping to the new value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.engine.terms import Index, Term, element, element_name, number, product, ratio
from byhand.errors import ExplainError
from byhand.optim import Optimizer, as_tuple
from byhand.tracing.answers import Answer
from byhand.tracing.elements import origin
from byhand.tracing.passes import resolved
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application
from byhand.update_rules import UpdateRule, state_of, updates

UPDATE = "update"  # of a parameter: its change
PARTS = ("theta", *dict.fromkeys(symbol.name for update in updates() for symbol in state_of(update)), UPDATE)
GRADIENT = 1  # index of the input g
NUMBERS = ("lr", "t")  # scalar inputs


def parts_of(rule: UpdateRule) -> tuple[str, ...]:
    """Return the parts of a parameter's update that can be explained."""
    return ("theta", *rule.state, UPDATE)


def update_trace(optimizer: Optimizer, name: str, parameter: Tensor, gradient: Any) -> Trace:
    """Return the trace of a parameter's next update by a gradient, clipped or not, without updating anything.

    The results are called `NAME.theta` and, for each array of state, `NAME.m` and so on; the inputs `NAME`,
    `NAME.gradient`, `NAME.m before` and so on, `lr`, and `t` if the update reads it.
    """
    return rule_trace(name, *optimizer.application(name, parameter, gradient))


def rule_trace(name: str, rule: UpdateRule, inputs: Mapping[str, Any]) -> Trace:
    """Return the trace of a parameter's update by a rule with these inputs; names as in `update_trace`."""
    equation, static = rule.equation, dict(rule.static)
    results, _ = equation.forward(*inputs.values(), **static)
    tensors = tuple(Tensor(x, name=_input_name(name, letter, rule)) for letter, x in inputs.items())
    made = tuple(map(Tensor, as_tuple(results)))
    return Trace.collect(made[0], (Application(0, f"{name}.{equation.name}", equation, tensors, static, made),))


def _input_name(parameter: str, letter: str, rule: UpdateRule) -> str:
    kept = f"{parameter}.{letter} before" if letter in rule.state else letter
    return {"theta": parameter, "g": f"{parameter}.gradient"}.get(letter, kept)


@dataclass(frozen=True)
class Clipping:
    """Scales gradients with this global norm down to `limit`, if that is smaller and not 0."""

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
        """Return one element of the new parameter (theta), its change (update), or its state, with its arithmetic.

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
        rule, inputs = self._rule, self._inputs(index)
        which = {"which": self._number(part)} if len(rule.equation.results) > 1 else {}
        arrays = tuple(map(np.asarray, inputs.values()))
        term = rule.equation.terms(index, arrays, None, **rule.static, **which)
        if part == UPDATE:  # the last part of theta
            term = term.parts[1]
        own = {"g": origin(self.parameter, gradient=True)}
        return Answer(
            name=name,
            index=index,
            value=self._value(part, index),
            equations=(rule.equation.name,),
            term=self._unclipped(term, index) if self.clipping.acts else term,
            origins=tuple(own.get(k) or origin(_input_name(self.parameter, k, rule)) for k in inputs),
            arrays=tuple(map(np.asarray, (inputs | {"g": self.gradient}).values())),
            beside=self._beside(index) if part in ("theta", UPDATE) else (),
            facts=self._facts(),
        )

    def array(self, part: str) -> np.ndarray:
        """Return the whole array whose elements `answer` explains."""
        return np.asarray(self._computed(part, self._inputs()))

    @property
    def _rule(self) -> UpdateRule:
        return self.optimizer.rule(self.parameter, self.tensor)

    def _number(self, part: str) -> int:
        """Return the index of the equation's result that contains a part; the change is the last part of theta."""
        parts = parts_of(self._rule)
        return parts.index(part) % (len(parts) - 1)

    @property
    def _each_alone(self) -> bool:
        """Whether an element's update reads no other element."""
        return self._rule.equation.inputs[0].shape == "(...)"

    def _inputs(self, index: Index | None = None) -> dict[str, Any]:
        """Return the inputs of the update; for an element updated alone, filled with its own clipped g."""
        if index is None or not self._each_alone:
            gradient = self.clipping.clipped(self.gradient)
        else:
            gradient = np.broadcast_to(self.clipping.clipped(self.gradient[index]), self.tensor.shape)
        return self.optimizer.application(self.parameter, self.tensor, gradient)[1]

    def _value(self, part: str, index: Index) -> float:
        """Return one element, computing the others only if the equation reads them."""
        inputs = self._inputs(index)
        if self._each_alone:
            place = tuple(slice(i, i + 1) for i in index)
            inputs = {k: x if k in NUMBERS else np.asarray(x[place]) for k, x in inputs.items()}
            index = (0,) * len(index)
        return float(self._computed(part, inputs)[index])

    def _computed(self, part: str, inputs: dict[str, Any]) -> Any:
        """Return the array of a part; the change in float64, since it is a difference of close numbers."""
        if part == UPDATE:
            inputs = {k: x if k in NUMBERS else np.asarray(x, dtype=np.float64) for k, x in inputs.items()}
        rule = self._rule
        made = as_tuple(rule.equation.forward(*inputs.values(), **rule.static)[0])[self._number(part)]
        return made - inputs["theta"] if part == UPDATE else made

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
        """Return the term with its gradient written as the unclipped gradient times the clipping factor."""
        if term.source == (GRADIENT, index):
            factor = ratio(number(self.clipping.limit), number(self.clipping.norm))
            label = f"∂loss/∂{element_name(self.parameter, index)}"
            whole = replace(term, label=label, value=float(self.gradient[index]))
            return replace(product((whole, factor), element_name("g", index)), value=term.value)
        return replace(term, parts=tuple(self._unclipped(part, index) for part in term.parts))

    def _beside(self, index: Index) -> tuple[Term, ...]:
        """Return the intermediate numbers that the update's arithmetic does not spell out, the clipped g first."""
        rule = self._rule
        if rule.equation.beside is None:
            return ()
        inputs = tuple(map(np.asarray, self._inputs(index).values()))
        terms = rule.equation.beside(index, inputs, **rule.static)
        if not self.clipping.acts:
            return terms
        own = element(inputs, GRADIENT, index, "g")
        return tuple(self._unclipped(term, index) for term in (own, *terms))
