"""Trace: a finished pass, and the backward pass from its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from byhand.engine import BackwardStep
from byhand.tracing.gradients import Gradients
from byhand.tracing.passes import Pass


class Trace(Pass):
    """The values and applications of one pass with their names.

    For any element, `terms` returns its arithmetic, `backward().terms` that of its gradient.
    """

    def backward(
        self, d_result: Any = None, settle: Callable[[BackwardStep], tuple[Any, ...]] | None = None
    ) -> Gradients:
        """Walk back from the result with its cotangent, 1 everywhere if not given; `settle` as in `walk_back`."""
        return Gradients.of(self, d_result, settle)
