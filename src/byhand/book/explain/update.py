"""Where an update comes from: one AdamW step for one element of a parameter, from clipping to the new value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand.book.explain.explanation import BEFORE, Explanation, Source, origin
from byhand.book.explain.value import explain_term, resolved
from byhand.book.numbers import arithmetic
from byhand.book.numbers.arithmetic import decimal, written
from byhand.book.words.language import Note
from byhand.engine import Tensor
from byhand.engine.terms import Index, Term, number, product, ratio
from byhand.equations.adamw import adamw
from byhand.optim import AdamW
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application

RESULTS = ("theta", "m", "v")  # of the adamw equation
PARTS = (*RESULTS, "update")
GRADIENT = 1  # number of the input g


@dataclass(frozen=True)
class Clipping:
    """Gradients of this global norm are scaled down to `limit`, if that is above 0 and smaller."""

    norm: float
    limit: float

    @property
    def acts(self) -> bool:
        """Whether anything is scaled."""
        return bool(self.limit) and self.norm > self.limit

    def of(self, gradient: Any) -> Any:
        """Return what clipping leaves of a gradient."""
        return gradient * (self.limit / self.norm) if self.acts else gradient

    def line(self, parameter: str, index: Index, whole: float, clipped: float) -> arithmetic.Definition:
        """Return the line that makes the clipped gradient g of the whole one."""
        factor = f"{decimal(self.limit)} / {decimal(self.norm)}"
        letters = f"∂loss/∂{written(parameter, index)} × {factor}"
        return arithmetic.Definition("g", f"{letters} = {decimal(whole)} × {factor}", Term("g", clipped))


def explain_update(
    parameter: str, part: str, index: Index, tensor: Tensor, gradient: Any, clipping: Clipping, optimizer: AdamW
) -> Explanation:
    """Explain one element of m, v, the new parameter (theta), or by how much it moves (update).

    gradient is the parameter's before clipping.
    """
    name = f"{parameter}.{part}"
    index = resolved(name, index, tensor.shape)
    clipped = clipping.of(gradient)
    application = _step(parameter, tensor, clipped, optimizer)
    trace = Trace.collect(application.results[0], (application,))
    result = application.results[PARTS.index(part) % len(RESULTS)]  # the update is the last part of theta
    term, value = trace.terms(trace.name(result), index), float(result.data[index])
    if part == "update":  # in float64: a difference of close numbers
        term, value = term.parts[1], float(_moved(application, optimizer)[index])
    explanation = explain_term(name, index, value, term, application, trace)
    whole = float(gradient[index])
    sources = tuple(
        Source(parameter, s.index, whole, "" if clipping.acts else s.letter, grad=True) if s.letter == "g" else s
        for s in explanation.sources
    )
    definitions, term = explanation.definitions, explanation.term
    if clipping.acts and term and sources != explanation.sources:
        definitions = (clipping.line(parameter, index, whole, float(clipped[index])), *definitions)
        term = _unclipped(term, index, whole, clipping)
    norm = clipping.norm if clipping.acts else None
    note = _note(optimizer.t + 1, optimizer.lr, norm, clipping.limit)
    before, _, *others = explanation.origins
    origins = (before, origin(parameter, grad=True), *others)
    return replace(explanation, term=term, origins=origins, sources=sources, definitions=definitions, note=note)


def updated(
    parameter: str, part: str, tensor: Tensor, gradient: Any, clipping: Clipping, optimizer: AdamW
) -> np.ndarray:
    """Return the whole array that `explain_update` explains one element of."""
    application = _step(parameter, tensor, clipping.of(gradient), optimizer)
    if part == "update":
        return _moved(application, optimizer)
    return np.asarray(application.results[RESULTS.index(part)].data)


def _moved(application: Application, optimizer: AdamW) -> np.ndarray:
    """Return by how much the step moves each element, computed in float64."""
    doubles = [np.asarray(t.data, dtype=np.float64) for t in application.inputs[:4]]
    return adamw.forward(*doubles, optimizer.lr, optimizer.t + 1, **application.static)[0][0] - doubles[0]


def _note(t: int, lr: float, norm: float | None, limit: float) -> Note:
    """Say which step an update belongs to; `norm` is the gradients' if it is clipped to `limit`."""
    en, zh = f"step {t} with lr {decimal(lr)}", f"第 {t} 步，学习率 {decimal(lr)}"
    if norm is not None:
        en += f"; gradients are clipped from {decimal(norm)} to {decimal(limit)}"
        zh += f"；梯度的范数从 {decimal(norm)} 裁剪到 {decimal(limit)}"
    facts = {"step": t, "lr": lr} | ({} if norm is None else {"gradient_norm": norm, "clipped_to": limit})
    return Note(f"{en}.", f"{zh}。", "update", facts)


def _unclipped(term: Term, index: Index, whole: float, clipping: Clipping) -> Term:
    """Return the term with the gradient that it reads written as the whole one times what clipping leaves of it."""
    if term.source == (GRADIENT, index):
        factor = ratio(number(clipping.limit), number(clipping.norm))
        return replace(product((replace(term, value=whole), factor), "g"), value=term.value)
    return replace(term, parts=tuple(_unclipped(part, index, whole, clipping) for part in term.parts))


def _step(parameter: str, tensor: Tensor, gradient: Any, optimizer: AdamW) -> Application:
    """Apply the adamw equation to the parameter as the optimizer's next step would; nothing is changed."""
    static = {
        "beta1": optimizer.betas[0],
        "beta2": optimizer.betas[1],
        "eps": optimizer.eps,
        "weight_decay": optimizer.weight_decay if optimizer.decays(parameter, tensor) else 0.0,
    }
    zeros = np.zeros_like(tensor.data)
    moments = [part.get(parameter, zeros) for part in (optimizer.m, optimizer.v)]
    results, _ = adamw.forward(tensor.data, gradient, *moments, optimizer.lr, optimizer.t + 1, **static)
    inputs = (
        tensor,
        Tensor(gradient, name=parameter),
        *(Tensor(x, name=f"{parameter}.{k}{BEFORE.en}") for x, k in zip(moments, "mv", strict=True)),
        Tensor(optimizer.lr, name="lr"),
        Tensor(optimizer.t + 1, name="t"),
    )
    outputs = tuple(Tensor(r, name=n) for r, n in zip(results, RESULTS, strict=True))
    return Application(0, f"{parameter}.adamw", adamw, inputs, static, outputs)
