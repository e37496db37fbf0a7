"""A lesson as text: for the terminal and, in the same words, for Markdown pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.book.lessons.lesson import Lesson, Number, Step
from byhand.book.lessons.letters import called
from byhand.book.words.language import Said, Words, say

GIVEN = Words("Given", "已知")
GOAL, WHY = Words("Goal: ", "目的："), Words("Why: ", "原因：")
LONGEST_LETTERS = 130  # characters of arithmetic in letters; longer does not help


def text(lesson: Lesson, lang: str = "en", first: int = 1) -> str:
    """Return the whole lesson step by step, or from the step `first` on."""
    lines = [lesson.title.said(lang), "", lesson.intro.said(lang), *given_lines(lesson, lang)]
    told: set[Words] = set()
    for count, step in enumerate(lesson.steps[first - 1 :], first):
        lines += ["", *step_lines(count, step, lang), *why_lines(step, lang, told)]
    return "\n".join(lines)


def given_lines(lesson: Lesson, lang: str) -> Iterator[str]:
    """Yield the given arrays: their letters and, where these differ, their names in the code."""
    if lesson.given:
        yield from ("", GIVEN.said(lang), *named_lines([(in_code(name, lang), x) for name, x in lesson.given], lang))


def in_code(name: Said, lang: str) -> str:
    """Return a name's letter, with the name if that differs."""
    name = say(name, "en")
    letter = called(name)
    return letter if letter == name else f"{letter} ({say(name, lang)})"


def named_lines(arrays: Sequence[tuple[Said, str]], lang: str) -> Iterator[str]:
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
    """Yield the reason for a step, unless an earlier one gave it already; `told` collects them."""
    if step.why and (reason := step.reason or step.why) not in told:
        told.add(reason)
        yield f"     {WHY.said(lang)}{step.why.said(lang)}"


def number_line(number: Number, lang: str = "en") -> str:
    """Return `label = arithmetic = value`, without repetition."""
    return " = ".join([say(number.label, lang), *worked(number, lang), number.shown])


def worked(number: Number, lang: str = "en") -> Iterator[str]:
    """Yield a number's arithmetic, first in letters if it shows all of it; nothing for a mere copy."""
    if number.whole and len(number.letters) <= LONGEST_LETTERS:
        yield say(number.letters, lang)
    if number.expression not in (number.shown, number.letters):
        yield say(number.expression, lang)


def result_lines(step: Step, lang: str = "en") -> Iterator[str]:
    """Yield the arrays that a step ends with."""
    for name, rows in step.results:
        yield f"   → {say(name, lang)} = {rows}"
