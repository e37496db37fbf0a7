"""Gradients: one walk back through a trace, its steps and what it gave every tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byhand.engine import BackwardStep, Tensor
from byhand.engine.terms import Index
from byhand.tracing.contributions import Contribution, contributions

if TYPE_CHECKING:
    from byhand.tracing.trace import Trace


@dataclass(frozen=True, eq=False)
class Gradients:
    """The steps back, the last application first, and d result / d tensor by name."""

    trace: Trace
    steps: tuple[BackwardStep, ...]
    by_name: dict[str, Any]

    @classmethod
    def collect(cls, root: str, d_root: Any, steps: tuple[BackwardStep, ...], trace: Trace) -> Gradients:
        """Add up what the steps give each tensor."""
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
