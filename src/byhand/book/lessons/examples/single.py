"""A computation forward and back from a given cotangent: shared by the examples about a few equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content, Maker, NamedArrays, Step, grid
from byhand.book.words.language import Words
from byhand.engine import Equation, Tensor
from byhand.tracing.trace import Trace

Part = tuple[NamedArrays, list[Step]]


def both_ways(
    equation: Equation, name: str, letter: str, x: Any, d: Any, array: Maker, *others: Tensor, **static: Any
) -> Part:
    """Return an equation applied to x, and back with the cotangent d."""
    given_x = Tensor(array(x), requires_grad=True, name=letter)
    return walked(Trace.of(lambda: equation(given_x, *others, name=name, **static)), array(d))


def walked(trace: Trace, d: np.ndarray) -> Part:
    """Return the given arrays of a pass with the cotangent d of its result, and the steps forward and back."""
    start = *given(trace), (f"∂{trace.name(trace.result)}", grid(d))
    return start, [*forward_steps(trace), *backward_steps(trace, d)]


def single(intro: Words, *parts: Part) -> Content:
    """Return a lesson of several such parts; an array that two parts give is listed once."""
    start = dict(pair for given, _ in parts for pair in given)
    return intro, [step for _, steps in parts for step in steps], tuple(start.items())
