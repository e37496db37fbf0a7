"""A gradient element by element: what each element of a result hands back to one element of an input.

A vjp is linear in the cotangent, so each element of a result contributes its cotangent times its slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from byhand.engine import BackwardStep, Tensor
from byhand.engine.terms import Index
from byhand.tracing.slopes import slopes


@dataclass(frozen=True, slots=True)
class Contribution:
    """cotangent x slope, where the cotangent is d loss / d `name`[`index`]; numbers of whatever type arrays hold."""

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
