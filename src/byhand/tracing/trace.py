"""Trace: a finished pass, and the backward pass from its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.engine import BackwardStep
from byhand.tracing.gradients import Gradients
from byhand.tracing.html import table
from byhand.tracing.passes import Pass


class Trace(Pass):
    """The values and applications of one pass with their names.

    For any element, `terms` returns its arithmetic, `backward().terms` that of its gradient.
    """

    def _repr_html_(self) -> str:
        rows = (
            (name, use.equation.name, " × ".join(map(str, np.shape(self.values[name]))), _length(self.values[name]))
            for name, (use, _) in self.made.items()
        )
        return table("one pass", ("tensor", "equation", "shape", "length"), rows)

    def backward(
        self, d_result: Any = None, settle: Callable[[BackwardStep], tuple[Any, ...]] | None = None
    ) -> Gradients:
        """Walk back from the result with its cotangent, 1 everywhere if not given; `settle` as in `walk_back`."""
        return Gradients.of(self, d_result, settle)


def _length(array: Any) -> float:
    return float(np.linalg.norm(np.asarray(array, dtype=np.float64)))
