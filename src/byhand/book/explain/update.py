"""Explains an update: one step of AdamW or Muon for one element, from clipping to the new value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from byhand.book.explain.explanation import Explanation, Source
from byhand.book.explain.value import explain_term
from byhand.book.numbers import arithmetic
from byhand.book.numbers.arithmetic import decimal, written
from byhand.book.words.language import Note
from byhand.engine import Tensor
from byhand.engine.terms import Index, Term, element, number, product, ratio, total
from byhand.equations.muon import apart, together
from byhand.equations.orthogonalise import frobenius, orthogonalise
from byhand.errors import ExplainError
from byhand.optim import AdamW
from byhand.tracing.gradients import origin
from byhand.tracing.passes import resolved
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application
from byhand.tracing.updates import update_trace

RESULTS = ("theta", "m", "v")  # of the adamw equation; muon has the first two
PARTS = (*RESULTS, "update")
GRADIENT = 1  # number of the input g


@dataclass(frozen=True)
class Clipping:
    """Scales gradients of this global norm down to `limit`, if that is above 0 and smaller."""

    norm: float
    limit: float

    @property
    def acts(self) -> bool:
        """Whether it scales the gradients."""
        return bool(self.limit) and self.norm > self.limit

    def of(self, gradient: Any) -> Any:
        """Return a gradient after clipping."""
        return gradient * (self.limit / self.norm) if self.acts else gradient

    def line(self, parameter: str, index: Index, whole: float, clipped: float) -> arithmetic.Definition:
        """Return the line that computes the clipped gradient g from the whole one."""
        factor = f"{decimal(self.limit)} / {decimal(self.norm)}"
        letters = f"∂loss/∂{written(parameter, index)} × {factor}"
        return arithmetic.Definition("g", f"{letters} = {decimal(whole)} × {factor}", Term("g", clipped))


@dataclass(frozen=True, eq=False)
class ParameterUpdate:
    """The optimizer's next step for one parameter; `gradient` is the parameter's before clipping."""

    parameter: str
    tensor: Tensor
    gradient: Any
    clipping: Clipping
    optimizer: AdamW

    def explain(self, part: str, index: Sequence[int]) -> Explanation:
        """Explain one element of m, v, the new parameter (theta), or its change (update)."""
        parameter, clipping, by_muon = self.parameter, self.clipping, self.parameter in self.optimizer.parts
        name = f"{parameter}.{part}"
        if part == "v" and by_muon:
            raise ExplainError(
                f"{name} does not exist: Muon keeps no squares. Ask for {parameter}.m, .theta or .update."
            )
        index = resolved(name, index, self.tensor.shape)
        trace, application = self._trace, self._application
        result = application.results[PARTS.index(part) % len(RESULTS)]  # the update is the last part of theta
        term, value = trace.terms(trace.name(result), index), float(result.data[index])
        if part == "update":  # in float64: a difference of close numbers
            term, value = term.parts[1], float(self._moved()[index])
        explanation = explain_term(name, index, value, term, application, trace)
        whole = float(self.gradient[index])
        definitions, read, term = explanation.definitions, explanation.sources, explanation.term
        if by_muon and part != "m":
            lines, own = _direction(application, index)
            definitions, read = (*definitions, *lines), (*read, *own)
        sources = tuple(
            Source(parameter, s.index, whole, "" if clipping.acts else s.letter, grad=True) if s.letter == "g" else s
            for s in read
        )
        if clipping.acts and term and any(source.grad for source in sources):
            clipped = float(clipping.of(self.gradient)[index])
            definitions = (clipping.line(parameter, index, whole, clipped), *definitions)
            term = _unclipped(term, index, whole, clipping)
        before, _, *others = explanation.origins
        origins = (before, origin(parameter, grad=True), *others)
        return replace(
            explanation, term=term, origins=origins, sources=sources, definitions=definitions, note=self._note()
        )

    def array(self, part: str) -> np.ndarray:
        """Return the whole array whose elements `explain` explains."""
        return self._moved() if part == "update" else np.asarray(self._application.results[RESULTS.index(part)].data)

    @cached_property
    def _trace(self) -> Trace:
        """The optimizer's next step for the parameter, by the clipped gradient."""
        return update_trace(self.optimizer, self.parameter, self.tensor, self.clipping.of(self.gradient))

    @property
    def _application(self) -> Application:
        return self._trace.applications[0]

    def _moved(self) -> np.ndarray:
        """Return the change of each element, computed in float64."""
        application = self._application
        doubles = [np.asarray(t.data, dtype=np.float64) for t in application.inputs if t.name not in ("lr", "t")]
        rate, step = self.optimizer.rate_of(self.parameter), self.optimizer.t + 1
        numbers = (rate, step)[: len(application.inputs) - len(doubles)]
        return application.equation.forward(*doubles, *numbers, **application.static)[0][0] - doubles[0]

    def _note(self) -> Note:
        """Name the step, its learning rate, and the clipping if it acts."""
        t, lr, clipping = self.optimizer.t + 1, self.optimizer.rate_of(self.parameter), self.clipping
        en, zh = f"step {t} with lr {decimal(lr)}", f"第 {t} 步，学习率 {decimal(lr)}"
        facts: dict[str, float] = {"step": t, "lr": lr}
        if clipping.acts:
            norm, limit = decimal(clipping.norm), decimal(clipping.limit)
            en += f"; gradients are clipped from {norm} to {limit}"
            zh += f"；梯度的范数从 {norm} 裁剪到 {limit}"
            facts |= {"gradient_norm": clipping.norm, "clipped_to": clipping.limit}
        return Note(f"{en}.", f"{zh}。", "update", facts)


def _unclipped(term: Term, index: Index, whole: float, clipping: Clipping) -> Term:
    """Return the term with its gradient written as the whole gradient times the clipping factor."""
    if term.source == (GRADIENT, index):
        factor = ratio(number(clipping.limit), number(clipping.norm))
        return replace(product((replace(term, value=whole), factor), "g"), value=term.value)
    return replace(term, parts=tuple(_unclipped(part, index, whole, clipping) for part in term.parts))


def _direction(application: Application, index: Index) -> tuple[list[arithmetic.Definition], list[Source]]:
    """Return the lines that define an element of Muon's direction O, and the element's gradient and momentum."""
    _, g, m = (np.asarray(t.data) for t in application.inputs[:3])
    mu, parts = application.static["momentum"], application.static["parts"]
    own = element((g, m), 0, index, "g")

    def blended(average: Term, label: str) -> Term:
        return total((product((number(mu), average)), product((number(1 - mu), own))), label)

    ahead = blended(blended(element((g, m), 1, index, "m"), "m'"), "n")
    whole = apart(mu * (mu * m + (1 - mu) * g) + (1 - mu) * g, parts)
    norm = together(np.broadcast_to(frobenius(whole), whole.shape), parts)[index]
    made = together(orthogonalise.forward(whole)[0], parts)[index]
    lines = [
        *arithmetic.definitions(total((ahead,))),
        arithmetic.Definition("|n|", "√Σn²", Term("|n|", float(norm))),
        arithmetic.Definition(written("O", index), written("orthogonalise(n)", index), Term("O", float(made))),
    ]
    tensors = application.inputs[1], application.inputs[2]
    return lines, [
        Source(tensor.name, index, float(tensor.data[index]), k) for k, tensor in zip("gm", tensors, strict=True)
    ]
