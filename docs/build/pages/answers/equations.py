"""Answers about equations: their entries, groups, sources, worked examples, and their values beside their slopes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import source
from byhand.book.finding.finding import Finding
from byhand.book.finding.flow import groups as equation_groups
from byhand.book.lessons.examples import TITLES
from byhand.book.numbers import closed_form
from byhand.book.words.language import Words
from byhand.engine.equation import registry
from where import index

Pairs = list[tuple[str, closed_form.Numbers]]  # a letter in LaTeX, and what it stands for


def finding(stem: str) -> Finding:
    """Return what `where` answers about an equation."""
    return index.findings()[stem]


def terms_of(stem: str) -> list[str | None]:
    """Return the place of the arithmetic of one element; none for an equation that is composed of others."""
    terms = getattr(registry[stem], "terms", None)
    return [source.definition(source.file_of(terms), terms.__name__)] if terms else []


@dataclass(frozen=True)
class Example:
    """An equation's worked example: settings, inputs, result, upstream gradient, gradients, and its lesson if any."""

    static: list[str]
    given: Pairs
    result: Pairs
    back: Pairs
    gradients: Pairs
    note: Words
    lesson: str


def worked_example(stem: str) -> Example:
    """Return the worked example of an equation's entry."""
    equation, entry, lesson = registry[stem], ENTRIES[stem], stem.replace("_", "-")
    latex = {symbol.name: symbol.latex for symbol in equation.inputs}
    results = [symbol.latex for symbol in equation.results]
    upstream = [rf"\partial {name}" for name in results]
    return Example(
        static=[f"`{name}={setting}`" for name, setting in entry.static.items()],
        given=[(latex[name], x) for name, x in entry.inputs.items()],
        result=list(zip(results, closed_form.several(entry.result), strict=True)),
        back=list(zip(upstream, closed_form.several(entry.d_result), strict=True)),
        gradients=[(rf"\partial {latex[name]}", d) for name, d in entry.gradients.items()],
        note=Words(entry.note, entry.note_zh),
        lesson=lesson if lesson in TITLES else "",
    )


def values_and_slopes_of(stems: list[str], places: list[str]) -> list[tuple[str, ...]]:
    """Return a row for each place: the number, and each equation's value and slope there; settings as worked."""
    xs = np.array(places, float)
    columns: list[Any] = [[f"{x:g}" for x in xs]]
    for stem in stems:
        static = ENTRIES[stem].static
        y, saved = registry[stem].forward(xs, **static)
        slopes = registry[stem].vjp(saved, np.ones_like(xs), **static)[0]
        columns += [[f"{number + 0.0:.6f}" for number in column.round(6)] for column in (y, slopes)]
    return list(zip(*columns, strict=True))
