"""The arithmetic of arrays on the way: those that an application saves, or a step shows without a name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from byhand.engine import Term
from byhand.engine.terms import Index, below, number
from byhand.tracing.tracer import Application

SAME = 1e-13  # relative difference of numbers that are one


def saved_term(application: Application, which: int) -> Callable[[Index], Term] | None:
    """Return the arithmetic of the elements of an array that an application saves, if its equation says it."""
    write = application.equation.saved_terms
    return write and (lambda index: write(which, index, application.arrays, **application.static))


def intermediate(application: Application, data: np.ndarray) -> list[Term] | None:
    """Return the terms of an intermediate array's numbers, found by these; None if the arithmetic has another form.

    They are those of a saved array, or parts of the result's terms: of the same element, or of the row's first.
    """
    result = application.results[0]
    for k, x in enumerate(_saved(application) if application.equation.saved_terms else ()):
        known = any(t.data is x for t in (*application.inputs, *application.results))
        same = not known and x.size == data.size and np.allclose(np.ravel(x), data.ravel(), rtol=SAME, atol=0)
        if same and (term := saved_term(application, k)):
            return [term(index) for index in np.ndindex(*x.shape)]
    size = result.data.size
    apart = size // data.size if data.size and size % data.size == 0 else 0
    found = []
    for k, value in enumerate(data.ravel().tolist()):
        index = tuple(map(int, np.unravel_index(k * apart, result.shape))) if result.shape else ()
        parts = [p for p in below(application.term(index)) if p.parts and abs(p.value - value) <= SAME * abs(value)]
        parts.sort(
            key=lambda part: not part.label
        )  # log(sum) is a row's loss only if its target has the largest logit
        part = parts[0] if parts else None if value else number(0)  # 0 is what a mask leaves
        if part is None:
            return None
        found.append(part)
    return found


def _saved(application: Application) -> tuple[np.ndarray, ...]:
    """Return what an application saves; one that records nothing is applied once more."""
    node = application.results[0].node
    return node.saved if node else application.equation.forward(*application.arrays, **application.static)[1]
