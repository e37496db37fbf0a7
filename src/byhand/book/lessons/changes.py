"""Changes of a worked example's given numbers, as readers write them.

    W_K=W_Q            an array of another name
    X[1]=X[0]          a row of it, or an element
    W_Q[0,0]=1.001     a number, also 3/4 or √2
    X=[[0,1],[1,0]]    rows of numbers

Right-hand sides use the original numbers, so that X[0]=X[1] and X[1]=X[0] exchange two rows. An example can be changed
if its file has `GIVEN`, nested closed forms by name; `CHOICES` there names the settings that take only a few integers.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from byhand.book.lessons.lesson import Lesson, Number
from byhand.book.numbers import closed_form
from byhand.book.practice.checking import narrow, tidy
from byhand.book.words.language import say
from byhand.errors import ByhandError

Given = Mapping[str, Any]  # nested closed forms by name
Choices = Mapping[str, tuple[int, ...]]

HOW = "Write it like W_K=W_Q, X[0]=X[1], W_Q[0,0]=1.001 or rate=1/5."
LONGEST = 1000  # characters of a change
LARGEST = 1_000_000
DEEPEST = 4  # brackets inside each other
_PLACE = re.compile(r"\s*([^\W\d][\w.]*'?)\s*(?:\[([\d\s,]+)\])?\s*")
_ENTRY = re.compile(r"[^\[\],]+")


def with_changes(given: Given, changes: Sequence[str], choices: Choices = {}) -> dict[str, Any]:  # noqa: B006
    """Return the given numbers with these changes; ByhandError if one cannot be made."""
    new = copy.deepcopy(dict(given))
    for change in changes:
        left, sign, right = narrow(change[: LONGEST + 1]).partition("=")
        place = _PLACE.fullmatch(left)
        if len(change) > LONGEST or not sign or place is None:
            raise ByhandError(f"--set {change[:80]!r} is not a change. {HOW}")
        name, index = place[1], _index(place[2])
        _require_name(name, given)
        old = _at(given[name], index, left.strip())
        found = _value(right, given)
        if _shape(old) == ((),) and not isinstance(found, list):  # y=1 where y has one number
            found = [found]
        if _shape(found) != _shape(old):
            raise ByhandError(
                f"--set {change[:80]!r} puts {_in_words(found)} where {left.strip()} has {_in_words(old)}. "
                "Give as many."
            )
        allowed = choices.get(name)
        numbers = set(_numbers(found))
        if allowed and not numbers <= set(allowed):
            raise ByhandError(
                f"--set {change[:80]!r}: {name} takes {' or '.join(map(str, allowed))}. Use one of them."
            )
        _put(new, name, index, found)
    return new


def before_and_after(lesson: Lesson, plain: Lesson) -> list[tuple[Number, Number]]:
    """Return the lesson's single numbers, such as the loss, before and after the changes.

    If it has none, the numbers of its last step.
    """
    was = _named(plain)
    pairs = [(name, was[name], number) for name, number in _named(lesson).items() if name in was]
    single = [pair for pair in pairs if "[" not in pair[0] and not pair[0].startswith("∂")]
    last = {say(number.label, "en") for number in lesson.steps[-1].numbers}
    return [(before, now) for name, before, now in single or [pair for pair in pairs if pair[0] in last]]


def _named(lesson: Lesson) -> dict[str, Number]:
    return {say(number.label, "en"): number for step in lesson.steps for number in step.numbers}


def _require_name(name: str, given: Given) -> None:
    if name not in given:
        raise ByhandError(
            f"--set names {name[:40]!r}, which the example does not have. Use one of {', '.join(given)}."
        )


def _index(written: str | None) -> tuple[int, ...]:
    places = [] if written is None else [place.strip() for place in written.split(",")]
    return tuple(int(place) if place.isdigit() and len(place) < 5 else -1 for place in places)


def _at(numbers: Any, index: tuple[int, ...], written: str) -> Any:
    for place in index:
        if not isinstance(numbers, list) or not 0 <= place < len(numbers):
            raise ByhandError(f"--set {written} does not exist. Count rows and columns from 0, within its shape.")
        numbers = numbers[place]
    return numbers


def _put(given: dict[str, Any], name: str, index: tuple[int, ...], found: Any) -> None:
    if not index:
        given[name] = copy.deepcopy(found)
        return
    _at(given[name], index[:-1], name)[index[-1]] = copy.deepcopy(found)


def _value(written: str, given: Given) -> Any:
    """Return another array or part of one, rows of numbers, or one number."""
    place = _PLACE.fullmatch(written)
    if place and place[1] in given:
        return _at(given[place[1]], _index(place[2]), written.strip())
    if not written.strip().startswith("["):
        return _number(written)
    depth = max((written[:i].count("[") - written[:i].count("]") for i in range(len(written) + 1)), default=0)
    try:
        if depth > DEEPEST:
            raise ValueError
        nested = ast.literal_eval(_ENTRY.sub(lambda part: repr(part[0]) if part[0].strip() else "", written.strip()))
        if not isinstance(nested, list):
            raise ValueError
    except (SyntaxError, ValueError):
        raise ByhandError(f"{written[:80]!r} is not an array. Write rows, as in [[1, 0], [1/2, 2]].") from None
    return closed_form.each(_number, nested)


def _number(written: str) -> str:
    """Return a number as a closed form; ByhandError if it is none, or too large for the arithmetic that follows."""
    number = tidy(written)
    if abs(closed_form.value(number)) > LARGEST:
        raise ByhandError(f"{written.strip()!r} is too large for an example. Use a number up to {LARGEST:,}.")
    return number


def _shape(numbers: Any) -> Any:
    """Return the lengths of nested lists, as nested tuples, so that ragged rows differ from all others."""
    return tuple(map(_shape, numbers)) if isinstance(numbers, list) else ()


def _in_words(numbers: Any) -> str:
    if not isinstance(numbers, list):
        return "one number"
    if any(isinstance(row, list) for row in numbers):
        lengths = sorted({len(row) for row in numbers if isinstance(row, list)})
        return f"{len(numbers)} row{'s' * (len(numbers) != 1)} of {' and '.join(map(str, lengths))}"
    return f"{len(numbers)} number{'s' * (len(numbers) != 1)}"


def _numbers(nested: Any) -> list[float]:
    if isinstance(nested, list):
        return [number for row in nested for number in _numbers(row)]
    return [closed_form.value(nested)]
