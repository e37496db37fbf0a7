"""Where a gradient comes from: each use of a tensor, each element that the use reaches, cotangent times slope.

Beside it stands a central difference, for which the model is computed twice more in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byhand.book.explain import remarks as notes
from byhand.book.explain.explanation import ExplainError, Explanation, Part, Source, written
from byhand.book.finding.index import entries
from byhand.book.numbers import arithmetic
from byhand.engine import Tensor, interpreting, no_grad, walk_back
from byhand.engine.arrays import namespace
from byhand.engine.terms import Index
from byhand.model import TinyGPT
from byhand.tracing.contributions import Contribution, contributions
from byhand.tracing.trace import Nudge, Watched, moved

STEP = 1e-6  # of a central difference, in float64, relative to max(1, |x|)
ROUNDING = 64  # times the precision and the terms' sizes: what sums of rounded numbers may leave of zero


class Gradients:
    """One walk back from the loss: its steps, and d loss / d tensor by name for all that the loss depends on."""

    def __init__(self, result: Tensor, watched: Watched) -> None:
        self.result = result
        self.watched = watched
        xp = namespace(result.data)
        one = xp.asarray(1.0, dtype=result.dtype)
        self.steps = list(walk_back(result, one))
        self.by_name: dict[str, Any] = {watched.name(result): one}
        for step in self.steps:
            for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
                if d is not None:
                    name = watched.name(tensor)
                    self.by_name[name] = self.by_name[name] + d if name in self.by_name else d

    def norm(self, parameters: Mapping[str, Tensor]) -> float:
        """Return the global norm of the parameters' gradients."""
        squares = (self.by_name.get(name) for name in parameters)
        return math.sqrt(math.fsum(float((d * d).sum()) for d in squares if d is not None))

    def explain(self, name: str, index: Index, difference: float | None) -> Explanation:
        """Explain d loss / d element; `difference` is the central difference that goes beside it, if any."""
        tensor = self.watched.tensor(name)
        value = float(self.by_name[name][index])
        if name == self.watched.name(self.result):
            return Explanation(name, index, value, True, note=notes.ROOT, difference=difference)
        found = [
            contribution for step in self.steps for contribution in contributions(step, tensor, index, self.watched)
        ]
        found.sort(key=lambda s: -abs(s.value))
        uses = [s for s in self.steps if any(t is tensor for t in s.node.inputs)]
        equations = [s.node.equation for s in uses]
        known = entries()
        scale = math.fsum(abs(contribution.value) for contribution in found)
        cancels = bool(found) and abs(value) <= ROUNDING * float(np.finfo(self.result.dtype).eps) * scale
        note = notes.CANCELLED if cancels else None if found else notes.why_zero(uses, tensor, index)
        return Explanation(
            name,
            index,
            value,
            True,
            equation=", ".join(dict.fromkeys(e.name for e in equations)),
            formula="\n".join(dict.fromkeys(known[e.name].plain_derivative for e in equations)),
            latex=r" \quad ".join(dict.fromkeys(e.derivative for e in equations)),
            where=", ".join(dict.fromkeys(str(known[e.name].derivative) for e in equations)),
            expression="sum over what it reaches of (cotangent × slope)",
            terms=tuple(map(_part, found)),
            total=math.fsum(contribution.value for contribution in found),
            scale=scale,
            sources=tuple(map(_source, found)),
            difference=difference,
            note=note,
            cancels=cancels,
        )

    def require(self, name: str) -> None:
        """Raise ExplainError if this tensor of the computation has no gradient."""
        if name not in self.by_name:
            given = "not used by the loss" if self.watched.tensor(name).requires_grad else "given, not learned"
            raise ExplainError(f"{name} has no gradient: it is {given}. Ask for a parameter or an activation.")


def central_difference(
    model: TinyGPT, compute: Callable[[TinyGPT], Tensor], watched: Watched, name: str, index: Index
) -> float:
    """Return (loss(x + h) - loss(x - h)) / 2h for one element, computed in float64 on the spot."""
    arrays = {k: namespace(p.data).asarray(p.data, dtype=_double(p.data)) for k, p in model.parameters().items()}
    value = float(watched.tensor(name).data[index])
    h = STEP * max(1.0, abs(value))

    def loss(step: float) -> float:
        if name in arrays:
            nudged = TinyGPT(model.config, arrays=arrays | {name: moved(arrays[name], index, step)})
            with no_grad():
                return compute(nudged).item()
        application, which = watched.made[name]
        with interpreting(Nudge(application.number, which, index, step)):
            return compute(TinyGPT(model.config, arrays=arrays)).item()

    return (loss(h) - loss(-h)) / (2 * h)


def _source(contribution: Contribution) -> Source:
    return Source(contribution.name, contribution.index, float(contribution.cotangent), "d", grad=True)


def _part(contribution: Contribution) -> Part:
    target = written(contribution.name, contribution.index, True)
    numbers = f"{arithmetic.decimal(float(contribution.cotangent))} × {arithmetic.decimal(float(contribution.slope))}"
    return Part(f"{target} × slope = {numbers}", contribution.value)


def _double(x: Any) -> Any:
    return namespace(x).float64
