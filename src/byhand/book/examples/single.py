"""One equation with one input, forward and back: the frame of the examples that are about a single equation."""

from __future__ import annotations

from typing import Any

from byhand.book.backward_steps import backward_steps
from byhand.book.examples import TITLES, numbers
from byhand.book.forward_steps import forward_steps
from byhand.book.lesson import Lesson, Step, Words
from byhand.book.watch import watch
from byhand.engine import Equation, Tensor


def both_ways(
    equation: Equation, name: str, letter: str, x: Any, d: Any, exact: bool, *others: Tensor, **static: Any
) -> list[Step]:
    """Return the forward steps of an equation applied to x, and the backward steps of the cotangent d."""
    array = numbers(exact)
    result, watched = watch(
        lambda: equation(Tensor(array(x), requires_grad=True, name=letter), *others, name=name, **static)
    )
    return [*forward_steps(watched), *backward_steps(result, watched, array(d))]


def single(name: str, intro: Words, steps: list[Step]) -> Lesson:
    """Return a lesson of these steps."""
    return Lesson(name, TITLES[name], intro, tuple(steps))
