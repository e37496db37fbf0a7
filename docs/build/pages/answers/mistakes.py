"""Answers about typical mistakes: which number of an equation's worked example shows each, and what it becomes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.letters import label
from byhand.book.lessons.naming import place
from byhand.book.numbers import arithmetic, closed_form
from byhand.book.port.catalogue import Planted
from byhand.book.practice.edits import Slips
from byhand.book.words.language import Words, say
from byhand.engine.equation import Composite, registry
from byhand.errors import ByhandError
from pages.answers.equations import lettered, worked_steps
from pages.blocks.arrays import number_as_text
from port import planted

MOST = {"forward": 4, "vjp": 2}  # mistakes that a page lists
Shown = tuple[Words, str, str, str]  # the mistake, the number that shows it, the wrong value, the right one


def mistakes_of(stem: str) -> list[Shown]:
    """Return the typical mistakes that change a number of the worked example: of forward, then of vjp."""
    entry = ENTRIES[stem]
    halves = (("forward", entry.mistakes), ("vjp", entry.gradient_mistakes))
    return [shown for half, slips in halves for shown in [*_shown(stem, half, slips)][: MOST[half]]]


def _shown(stem: str, half: str, slips: Slips) -> Iterator[Shown]:
    steps = [step for step in worked_steps(stem) if step.is_derivative == (half == "vjp")]
    numbers = [lettered(stem, n) for step in steps for n in step.numbers]
    for en, zh, edit, *code in slips:
        of_terms = ((n.label, m.value, n.value) for n in numbers for m in n.mistakes if edit and m.en == en)
        of_code = _planted(stem, half, Planted(en, zh, f"{stem}.{half}", *code)) if code else iter(())
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
