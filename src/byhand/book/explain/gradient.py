"""Explains a gradient: each use of a tensor, each element that the use reaches, cotangent times slope."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.explain.explanation import Explanation, Source
from byhand.book.numbers.arithmetic import written
from byhand.book.words.language import Note
from byhand.engine import BackwardStep, Tensor
from byhand.engine.terms import Index, Term, number, product, total
from byhand.tracing.gradients import Contribution, Gradients, origin

ROUNDING = 64  # times precision times the terms' sizes: the largest residue of terms that cancel

ROOT = Note("the loss itself: its gradient is 1.", "损失本身：它的梯度是 1。", "loss")
CANCELLED = Note(
    "zero up to rounding: the terms cancel, and what is left of them is only their rounding.",
    "除舍入误差外为零：各项互相抵消，剩下的只是舍入误差。",
    "cancelled",
)
UNREACHED = Note(
    "zero: nothing that it changes has a gradient.", "为零：它能改变的数都没有梯度（梯度全为零）。", "unreached"
)


def explain_gradient(name: str, index: Index, gradients: Gradients, difference: float | None) -> Explanation:
    """Explain d loss / d element; `difference` is its central difference, if any."""
    trace = gradients.trace
    tensor = trace.tensor(name)
    value = float(gradients.by_name[name][index])
    if tensor is trace.result:
        return Explanation(name, index, value, True, note=ROOT, difference=difference)
    found = sorted(gradients.contributions(name, index), key=lambda s: -abs(s.value))
    term, origins = _sum(found, written(name, index))
    uses = gradients.uses(tensor)
    scale = math.fsum(abs(part.value) for part in term.parts)
    cancels = bool(found) and abs(value) <= ROUNDING * float(np.finfo(trace.result.dtype).eps) * scale
    return Explanation(
        name,
        index,
        value,
        True,
        equations=tuple(dict.fromkeys(s.node.equation.name for s in uses)),
        term=term,
        origins=origins,
        uses=partial(gradients.terms, name, index),
        terms=term.parts,
        sources=tuple(Source(s.name, s.index, float(s.cotangent), "d", grad=True) for s in found),
        difference=difference,
        note=CANCELLED if cancels else None if found else why_zero(uses, tensor, index),
        cancels=cancels,
    )


def why_zero(uses: Sequence[BackwardStep], tensor: Tensor, index: Index) -> Note:
    """Return why no gradient reaches an element, in the words of the entry of an equation that reads it, if any."""
    for step in uses:
        inputs = step.node.inputs
        explain = ENTRIES[step.node.equation.name].why_zero
        slot = next(k for k, t in enumerate(inputs) if t is tensor)
        words = explain(tuple(t.data for t in inputs), slot, index, **step.node.static) if explain else None
        if words:
            return words if isinstance(words, Note) else Note(words.en, words.zh, "zero")
    return UNREACHED


def norm(gradients: Gradients, parameters: Mapping[str, Tensor]) -> float:
    """Return the global norm of the parameters' gradients."""
    found = (gradients.by_name.get(name) for name in parameters)
    return math.sqrt(math.fsum(float((d * d).sum()) for d in found if d is not None))


def _sum(found: list[Contribution], target: str) -> tuple[Term, tuple[dict[str, Any], ...]]:
    """Return the sum of cotangents times slopes of the target, and the tensors whose cotangents it reads."""
    names = list(dict.fromkeys(s.name for s in found))
    numbers = {name: k for k, name in enumerate(names)}

    def part(s: Contribution) -> Term:
        label = written(s.name, s.index, grad=True)
        cotangent = Term(label, float(s.cotangent), source=(numbers[s.name], s.index))
        return product((cotangent, number(s.slope, f"∂{written(s.name, s.index)}/∂{target}")))

    return total(map(part, found)), tuple(origin(name, grad=True) for name in names)
