"""Answers about equations: entries, groups, code, worked examples with their arithmetic, values beside slopes."""

import ast
import re
from dataclasses import dataclass, replace
from functools import cache
from textwrap import dedent
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import source
from byhand.book.finding.finding import Finding
from byhand.book.finding.flow import groups as equation_groups
from byhand.book.lessons.examples import TITLES, of_entry
from byhand.book.lessons.lesson import Number, Step
from byhand.book.lessons.letters import called, label
from byhand.book.lessons.text import worked
from byhand.book.numbers import closed_form
from byhand.book.practice.selection import telling
from byhand.book.words.language import Said, Words, say
from byhand.engine.equation import Composite, registry
from where import index, syntax

entries = ENTRIES
SLOPES = re.compile(r"^∂\S+$|^[\d.]+ × ∂|× 0(?![.\d])")  # a mere copy, or slopes without a letter: of no use
Pairs = list[tuple[str, closed_form.Numbers]]  # a letter in LaTeX, and what it stands for


def finding(stem: str) -> Finding:
    """Return what `where` answers about an equation."""
    return index.findings()[stem]


def terms_of(stem: str) -> list[str | None]:
    """Return the place of the arithmetic of one element; none for an equation that is composed of others."""
    terms = getattr(registry[stem], "terms", None)
    return [source.definition(source.file_of(terms), terms.__name__)] if terms else []


def users_of(stem: str) -> list[str]:
    """Return where an equation is first used in each file of the model."""
    return list({use.path: use.where for use in reversed(finding(stem).uses)}.values())[::-1]


def half_of(stem: str, half: str) -> str:
    """Return an equation's `forward` or `vjp` without its docstring and its checks; "" for one composed of others."""
    if isinstance(registry[stem], Composite):
        return ""
    function = getattr(registry[stem], half)
    path = source.file_of(function)
    node = syntax.statement(path, function.__name__)
    kept = [n for n in node.body if not (isinstance(n, ast.Expr) and _checks(n.value))]
    while unread := [n for n in kept if isinstance(n, ast.Assign) and not _names(n.targets) & _names(kept, ast.Load)]:
        kept = [n for n in kept if n not in unread]  # what only a check reads
    lines = path.read_text(encoding="utf-8").splitlines()
    spans = [(node.lineno, node.body[0].lineno - 1), *((n.lineno, n.end_lineno) for n in kept)]
    return dedent("\n".join(line for first, last in spans for line in lines[first - 1 : last]))


def _checks(value: ast.expr) -> bool:
    """Return whether an expression that stands alone is a docstring or a check."""
    name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    return isinstance(value, ast.Constant) or name.startswith("require")


def _names(nodes: list[Any], context: type = ast.Store) -> set[str]:
    found = (n for node in nodes for n in ast.walk(node))
    return {n.id for n in found if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


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


def in_letters(stem: str, text: str) -> str:
    """Return arithmetic of an equation's worked example in the letters of its page: P, not weights."""
    equation, inputs = registry[stem], {symbol.name for symbol in registry[stem].inputs}
    letters = {called(symbol.name): label(symbol.latex) for symbol in equation.inputs}
    letters |= {called(r.name + "'" * (r.name in inputs)): label(r.latex) for r in equation.results}
    letters |= {f"2_{r.name}": label(r.latex) for r in equation.results}  # one of several, named as an input is
    letters = {name: own for name, own in letters.items() if "[" not in own}
    names = "|".join(re.escape(name) for name in sorted(letters, key=len, reverse=True))
    return re.sub(rf"(?<![\w^])(?:{names})(?![\w'\u0300-\u036f])", lambda name: letters[name[0]], text)


@cache
def worked_steps(stem: str) -> tuple[Step, ...]:
    """Return the steps of an equation's worked example; none if others compose it, and back from one result only."""
    if isinstance(registry[stem], Composite):
        return ()
    with np.errstate(all="ignore"):
        _, steps, _ = of_entry.lesson(stem, closed_form.array)
    return tuple(step for step in steps if not step.is_derivative or len(registry[stem].results) == 1)


def lettered(stem: str, n: Number) -> Number:
    """Return a number of a worked example in the letters of the equation's page."""

    def said(text: Said) -> Said:
        if isinstance(text, Words):
            return Words(in_letters(stem, text.en), in_letters(stem, text.zh))
        return in_letters(stem, text)

    letters = in_letters(stem, n.letters).replace("+ -", "− ")
    shown = replace(n, label=said(n.label), letters=letters, expression=said(n.expression))
    return replace(shown, whole=n.whole or _signs(letters) == _signs(say(n.expression, "en")))


def _signs(text: str) -> str:
    """Return the operations of an arithmetic: letters that show all of it have the same."""
    return re.sub(r"[^×/+−√²()]", "", text)


def worked_numbers(stem: str, back: bool) -> list[Number]:
    """Return a telling number of each result, or gradient, in letters too, with the parts that it needs."""
    told = []
    for step in (step for step in worked_steps(stem) if step.is_derivative == back):
        names = tuple(f"{say(name, 'en')}[" for name, _ in step.results)
        own = [n for n in step.numbers if lettered(stem, n).whole or not say(n.label, "en").startswith(names)]
        in_full, any_one = replace(step, numbers=tuple(own)), replace(step, is_derivative=False)
        told += telling(in_full, 1) or telling(step, 1) or telling(any_one, 1)
    shown = [replace(n, whole=")[" not in n.letters) for n in (lettered(stem, n) for n in told)]
    return [n for n in shown if list(worked(n)) and not SLOPES.search(n.letters)]


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
