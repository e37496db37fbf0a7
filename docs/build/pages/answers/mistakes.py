"""Answers about typical mistakes: which number of an equation's worked example shows each, and what it becomes."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.letters import label
from byhand.book.lessons.naming import place
from byhand.book.numbers import arithmetic, closed_form
from byhand.book.practice.catalogue import Planted, catalogue, rows
from byhand.book.practice.planting import planted
from byhand.book.words.language import Words, say
from byhand.engine.equation import Composite, registry
from byhand.errors import ByhandError
from pages.answers.equations import lettered, worked_steps
from pages.blocks.arrays import number_as_text

MOST = {"forward": 4, "vjp": 2}  # mistakes that a page lists
Shown = tuple[Words, str, str, str]  # the mistake, the number that shows it, the wrong value, the right one


def mistakes_of(stem: str) -> list[Shown]:
    """Return the typical mistakes that change a number of the worked example: of forward, then of vjp."""
    return [shown for half, most in MOST.items() for shown in islice(_shown(stem, half), most)]


def _shown(stem: str, half: str) -> Iterator[Shown]:
    steps = [step for step in worked_steps(stem) if step.is_derivative == (half == "vjp")]
    numbers = [lettered(stem, n) for step in steps for n in step.numbers]
    code = {mistake.en: mistake for mistake in catalogue() if mistake.where == f"{stem}.{half}"}
    entry = ENTRIES[stem]
    slips = entry.mistakes if half == "forward" else entry.gradient_mistakes
    # An entry that stands elsewhere, as the tests' own, has its words with it.
    words = {en: zh for en, zh, *_ in (*rows().get(f"{stem}.{half}", {}).values(), *slips)}
    for en, zh in words.items():
        of_terms = ((n.label, m.value, n.value) for n in numbers for m in n.mistakes if m.en == en)
        of_code = _planted(stem, half, code[en]) if en in code else iter(())
        for name, wrong, right in (*of_terms, *of_code):
            if not arithmetic.agrees(wrong, right):
                said = "NaN" if np.isnan(wrong) else number_as_text(wrong)
                yield Words(en, zh), say(name, "en"), said, number_as_text(right)
                break


def _planted(stem: str, half: str, mistake: Planted) -> Iterator[tuple[str, float, float]]:
    """Yield the elements of an equation's results, or gradients, with and without a mistake in its code."""
    equation, entry = registry[stem], ENTRIES[stem]
    if isinstance(equation, Composite):
        return
    inputs = [closed_form.array(x, integers=name not in entry.gradients) for name, x in entry.inputs.items()]
    _, saved = equation.forward(*inputs, **entry.static)
    several = len(equation.results) > 1
    d = tuple(map(closed_form.array, closed_form.several(entry.d_result)))

    def run() -> Any:
        if half == "forward":
            return equation.forward(*inputs, **entry.static)[0]
        return equation.vjp(saved, d if several else d[0], **entry.static)

    letters = (
        [label(r.latex) for r in equation.results]
        if half == "forward"
        else [f"∂{label(s.latex)}" for s in equation.inputs]
    )
    try:
        with planted(mistake), np.errstate(all="ignore"):
            wrong = run()
    except (ValueError, IndexError, ByhandError):  # shapes that do not fit would stop any program
        return
    pairs = zip(letters, _each(wrong), _each(run()), strict=False)
    for name, moved, right in pairs:
        if right is not None and np.shape(moved) == np.shape(right):
            for index, value in np.ndenumerate(right):
                yield place(name, index, right.shape), float(moved[index]), float(value)


def _each(arrays: Any) -> tuple[Any, ...]:
    return arrays if isinstance(arrays, tuple) else (arrays,)
