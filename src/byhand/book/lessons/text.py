"""A lesson as text: for the terminal and, in the same words, for Markdown pages."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.book.lessons.lesson import Lesson, NamedArrays, Number, Step
from byhand.book.words.language import Words, say

GIVEN = Words("Given", "已知")
GOAL, WHY = Words("Goal: ", "目的："), Words("Why: ", "原因：")


def text(lesson: Lesson, lang: str = "en", first: int = 1) -> str:
    """Return the whole lesson step by step, or from the step `first` on."""
    lines = [lesson.title.said(lang), "", lesson.intro.said(lang), *given_lines(lesson, lang)]
    told: set[Words] = set()
    for count, step in enumerate(lesson.steps[first - 1 :], first):
        lines += ["", *step_lines(count, step, lang), *why_lines(step, lang, told)]
    return "\n".join(lines)


def given_lines(lesson: Lesson, lang: str) -> Iterator[str]:
    """Yield the given arrays."""
    if lesson.given:
        yield from ("", GIVEN.said(lang), *named_lines(lesson.given, lang))


def named_lines(arrays: NamedArrays, lang: str) -> Iterator[str]:
    """Yield arrays by name, one below the other."""
    named = [(say(name, lang), rows) for name, rows in arrays]
    width = max((len(name) for name, _ in named), default=0)
    for name, rows in named:
        yield f"   {name:<{width}} = {rows}"


def step_lines(count: int, step: Step, lang: str) -> Iterator[str]:
    """Yield a step: its heading, its numbers, its result."""
    yield from heading_lines(count, step, lang)
    for number in step.numbers:
        yield f"   {number_line(number, lang)}"
    yield from result_lines(step, lang)


def heading_lines(count: int, step: Step, lang: str) -> Iterator[str]:
    """Yield a step's title with the place of its code, its goal, its formula."""
    where = f"  {step.where}" if step.where else ""
    yield f"{count}. {step.title.said(lang)}{where}"
    if step.goal:
        yield f"     {GOAL.said(lang)}{step.goal.said(lang)}"
    for line in say(step.formula, lang).splitlines():
        yield f"     {line}"


def why_lines(step: Step, lang: str, told: set[Words]) -> Iterator[str]:
    """Yield the reason for a step, unless an earlier one told it already; `told` collects them."""
    if step.why and step.why not in told:
        told.add(step.why)
        yield f"     {WHY.said(lang)}{step.why.said(lang)}"


def number_line(number: Number, lang: str = "en") -> str:
    """Return `label = arithmetic = value`, without saying the same thing twice."""
    parts = [say(number.label, lang)]
    if number.expression != number.shown:
        parts.append(say(number.expression, lang))
    return " = ".join([*parts, number.shown])


def result_lines(step: Step, lang: str = "en") -> Iterator[str]:
    """Yield the arrays that a step ends with."""
    for name, rows in step.results:
        yield f"   → {say(name, lang)} = {rows}"
