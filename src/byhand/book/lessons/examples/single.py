"""One equation with one input, forward and back: shared by the examples about a single equation."""

from __future__ import annotations

from typing import Any

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
    """Return the given arrays, and the steps: an equation applied to x, and back with the cotangent d."""
    trace = Trace.of(
        lambda: equation(Tensor(array(x), requires_grad=True, name=letter), *others, name=name, **static)
    )
    start = *given(trace), (f"∂{name}", grid(array(d)))
    return start, [*forward_steps(trace), *backward_steps(trace, array(d))]


def single(intro: Words, *parts: Part) -> Content:
    """Return a lesson of several such parts; an array that two parts give is listed once."""
    start = dict(pair for given, _ in parts for pair in given)
    return intro, [step for _, steps in parts for step in steps], tuple(start.items())
