"""Selects the numbers of a lesson that a quiz asks for: about 30, from every kind of step, with their parts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from byhand.book.lessons.lesson import Lesson, Number, Step
from byhand.book.lessons.working import TINY
from byhand.book.words.language import say

ENOUGH = 30  # questions; more only if a lesson has more kinds of steps
FEW = 4  # numbers of a step without an equation, which are asked together
PLACE = re.compile(r"(?P<name>.*?)(?:\[(?P<index>[\d,]*)\])?")
FACTOR = re.compile(r"−?\d+(?:\.\d+)?(?![\w.])")


def questions(lesson: Lesson, every: bool = False) -> list[tuple[Number, ...]]:
    """Return the numbers to ask for in each step: `every` one, or the instructive ones.

    Every kind of step contributes its most instructive number; then further steps and numbers, until they are ENOUGH.
    """
    if every or sum(len(step.numbers) for step in lesson.steps) <= ENOUGH:
        return [step.numbers for step in lesson.steps]
    chosen: list[tuple[Number, ...]] = []
    kinds: set[tuple[str, bool]] = set()
    for step in lesson.steps:
        kind = (step.stem or step.where, step.is_derivative)
        chosen.append(() if kind in kinds else telling(step, 1))
        kinds.add(kind)
    for many in range(1, max(len(step.numbers) for step in lesson.steps) + 1):
        if sum(map(len, chosen)) >= ENOUGH:
            break
        for k, step in enumerate(lesson.steps):
            more = telling(step, many)
            if sum(map(len, chosen)) - len(chosen[k]) + len(more) <= ENOUGH:
                chosen[k] = more
    return chosen


def telling(step: Step, many: int) -> tuple[Number, ...]:
    """Return the `many` most instructive elements of each result, after the labelled parts that they need."""
    names = [say(name, "en") for name, _ in step.results]
    elements = [[n for n in step.numbers if _place(n)[0] == name] for name in names]
    if not step.stem and len(step.numbers) <= FEW:
        return step.numbers
    if not any(elements):
        return step.numbers[-1 - many :]  # a single number, such as the loss, with its parts
    best = [n for found in elements for n in sorted(found, key=_worth, reverse=True)[:many]]
    if len(names) > 1 and not step.is_derivative and _with_parts(step, best) != tuple(best):
        places = [_place(n)[1] for n in sorted(elements[0], key=lambda n: (n.whole, _worth(n)), reverse=True)[:many]]
        return _with_parts(step, [n for found in elements for n in found if _place(n)[1] in places])
    teaching = [n for n in best if _worth(n)[0] and _worth(n)[2] > 1]  # a mere copy teaches little
    best = teaching[: 2 * many] if step.is_derivative else teaching or best[:1]
    return _with_parts(step, best)


def first_of_each(step: Step) -> tuple[Number, ...]:
    """Return the whole numbers of a step, one of each result, and the labelled parts they need."""
    return _with_parts(step, [n for n in step.numbers if n.whole])


def first_and_telling(step: Step) -> tuple[Number, ...]:
    """Return the whole numbers of a step and of each table another telling one, with the labelled parts they need."""
    best: list[Number] = [n for n in step.numbers if n.whole]
    for array in step.arrays:
        own = [n for n in telling(step, 2) if _place(n)[0] == array.label and n not in best]
        best += own[:1] if array.data.ndim > 1 else []
    return _with_parts(step, best or list(telling(step, 2)))


def _with_parts(step: Step, best: Sequence[Number]) -> tuple[Number, ...]:
    """Return these numbers and the labelled parts of their rows, in order."""
    names = [say(name, "en") for name, _ in step.results]
    places = [_place(n)[1] for n in best]

    def needed(part: Number) -> bool:
        name, index = _place(part)
        return name not in names and any(place[: len(index)] == index for place in places)

    return tuple(n for n in step.numbers if n in best or needed(n))


def _place(number: Number) -> tuple[str, tuple[str, ...]]:
    """Return the name and the index of a label such as `mean[0,1]`."""
    match = PLACE.fullmatch(say(number.label, "en"))
    return (match["name"], tuple(filter(None, (match["index"] or "").split(",")))) if match else ("", ())


def _worth(number: Number) -> tuple[bool, int, int]:
    """Return how instructive an element is: not tiny, few tiny numbers in it, many different ones except 0 and 1."""
    expression = say(number.expression, "en")
    return abs(number.value) > TINY, -expression.count("e−"), len(set(FACTOR.findall(expression)) - {"0", "1"})
