"""Gradients: one backward pass through a trace, its steps, and the contributions to each element.

A vjp is linear in the cotangent, so each element of a result contributes its cotangent times its slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byhand.engine import BackwardStep, Tensor
from byhand.engine.terms import Index
from byhand.tracing.slopes import slopes

if TYPE_CHECKING:
    from byhand.tracing.trace import Trace


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


@dataclass(frozen=True, eq=False)
class Gradients:
    """The backward steps, the last application first, and d result / d tensor by name."""

    trace: Trace
    steps: tuple[BackwardStep, ...]
    by_name: dict[str, Any]

    @classmethod
    def collect(cls, root: str, d_root: Any, steps: tuple[BackwardStep, ...], trace: Trace) -> Gradients:
        """Sum the gradients of each tensor over the steps."""
        by_name = {root: d_root}
        for step in steps:
            for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
                if d is not None:
                    name = trace.name(tensor)
                    by_name[name] = by_name[name] + d if name in by_name else d
        return cls(trace, steps, by_name)

    def uses(self, tensor: Tensor) -> list[BackwardStep]:
        """Return the steps of the applications that read the tensor."""
        return [step for step in self.steps if any(t is tensor for t in step.node.inputs)]

    def contributions(self, name: str, index: Index) -> Iterator[Contribution]:
        """Yield what each use of a tensor adds to the gradient of one of its elements."""
        tensor = self.trace.tensor(name)
        for step in self.uses(tensor):
            yield from contributions(step, tensor, index, self.trace.result_names(step.node))
