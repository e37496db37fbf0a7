"""Generated worked examples: the steps of a lesson as Markdown.

Each step has its goal, its formula, the arrays that are put in, a few elements worth doing, the result, and why; the
other elements are folded away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.index import findings
from byhand.book.lessons import examples
from byhand.book.lessons.lesson import Number, Step
from byhand.book.pages.blocks.arrays import (
    PARTIAL,
    called,
    displayed,
    escaped,
    exact,
    letter_of,
    matrix_of,
    quiet,
)
from byhand.book.pages.blocks.markdown import QUAD, block, display, display_lines, link, link_equation, table
from byhand.book.pages.blocks.shapes import LATEX
from byhand.book.practice.selection import telling
from byhand.book.words.language import Words, say
from byhand.book.words.plain_math import translated
from byhand.engine.equation import registry

ALL = 6  # numbers of a step that are worth showing all
FEW = 2  # elements of each result that are worked in sight
GOAL, WHY = Words("**Goal.** ", "**目的**："), Words("**Why.** ", "**原因**：")
GIVEN, MADE = Words("given", "已知"), Words("step {n}", "第 {n} 步")
ONE = Words("always 1", "总是 1")
KEPT, NEW = Words("saved by the forward pass", "前向时保留"), Words("with the new weights", "由新权重算出")


@block
def lesson(page: Path, lang: str, name: str, steps: str = "", form: str = "") -> str:
    """The steps of a worked example, such as `2-5`; in the form `brief` only their results."""
    whole = examples.make(name)
    first, _, last = steps.partition("-")
    numbers = range(int(first or 1), int(last or first or len(whole.steps)) + 1)
    made: dict[str, list[int]] = {}
    for n, step in enumerate(whole.steps, 1):
        for array in step.arrays:
            made.setdefault(array.name, []).append(n)
    told: set[Words] = set()
    shown = [_step(page, lang, n, whole.steps[n - 1], made, told, form == "brief") for n in numbers]
    return "\n\n".join(shown)


@block
def lesson_intro(page: Path, lang: str, name: str) -> str:
    """The purpose of a worked example, and the command that starts it."""
    doing = Words(
        f"Do it yourself: `byhand work {name} --quiz`", f"自己做一遍：`byhand work {name} --quiz --lang zh`"
    ).said(lang)
    return f"{examples.make(name).intro.said(lang)}\n\n{doing}"


@block
def given(page: Path, lang: str, name: str) -> str:
    """The arrays and settings that a worked example starts from, as fractions and roots if they have that form."""
    lines = []
    for array, numbers in examples.make(name, exact=True).given:
        said = say(array, "en")
        in_code = rf" \quad (\texttt{{{escaped(said)}}})" if said in LATEX else ""  # W_te is wte in code
        lines.append(f"{letter_of(said)} = {exact(numbers)}{in_code}")
    return display_lines(lines)


@block
def looked_up(page: Path, lang: str) -> str:
    """The rows that the paper model's tokens and positions select, and their sums."""
    steps = examples.make("paper-gpt").steps
    arrays = {array.name: array.data for step in steps for array in (*step.inputs, *step.arrays)}
    lines = []
    for t, token in enumerate(arrays["tokens"].tolist()):
        e, at, x = (matrix_of(row) for row in (arrays["wte"][token], arrays["wpe"][t], arrays["x"][t]))
        lines.append(rf"X_{t} = W_{{te}}[{token}] + W_{{pe}}[{t}] = {e} + {at} = {x}")
    return display_lines(lines)


def _step(
    page: Path, lang: str, number: int, step: Step, made: dict[str, list[int]], told: set[Words], brief: bool
) -> str:
    title = step.title.said(lang)
    if step.stem in registry:
        title = f"[{title}]({link_equation(page, step.stem, lang).rpartition('(')[2]}"
    place = f" · {link(page, step.where)}" if step.where else ""
    parts = [f"**{number}.** {title}{place}"]
    if brief:
        return "\n\n".join([*parts, *_results(step, lang, brief)])
    if step.goal:
        parts.append(GOAL.said(lang) + step.goal.said(lang))
    parts += [_formula(step, lang), *_put_in(step, lang, number, made), *_kept(step, lang)]
    parts += [*_worked(step, lang), *_results(step, lang)]
    if step.why and step.why not in told:
        told.add(step.why)
        parts.append(WHY.said(lang) + step.why.said(lang))
    return "\n\n".join(parts)


def _formula(step: Step, lang: str) -> str:
    """Return the formula of a step: in LaTeX for an equation, otherwise in plain text."""
    finding = findings().get(step.stem)
    if finding is None or not finding.latex:
        return f"> {say(step.formula, lang)}"
    entry = ENTRIES[step.stem]
    general = (finding.latex, finding.latex_derivative)
    single = entry.one_head if all(array.data.ndim < 3 for array in (*step.inputs, *step.arrays)) else None
    latex = (single or entry.on_paper or general)[step.is_derivative]
    optional = [symbol.latex for symbol in registry[step.stem].inputs]
    there = [array.letter.removeprefix(PARTIAL) for array in (step.arrays if step.is_derivative else step.inputs)]
    missing = [letter for letter in optional if letter not in there]
    if missing:
        for given, instead in entry.without:
            latex = latex.replace(given, instead)
    if step.is_derivative:  # only of the inputs that are learned or lead to such
        lines = latex.split(QUAD)
        latex = QUAD.join(x for x in lines if not any(x.startswith(f"{PARTIAL}{letter} =") for letter in missing))
    return display(translated(latex, lang))


def _put_in(step: Step, lang: str, number: int, made: dict[str, list[int]]) -> Iterator[str]:
    """Yield the inputs' letters with the steps that made them, and the arrays."""
    if not step.inputs:
        return
    origins = []
    names = [array.name for array in step.inputs]
    for k, array in enumerate(step.inputs):
        before = [n for n in made.get(array.name, []) if n < number]
        latest = before[-names.count(array.name) :][names[:k].count(array.name) :]  # gradients that add up share one
        latest = latest or before[-1:]  # an array may stand in two places, such as q and k
        missing = KEPT if not array.name and array.data.ndim else NEW if array.name.startswith("after.") else GIVEN
        if array.letter.startswith(PARTIAL) and not array.data.ndim:
            missing = ONE
        origin = MADE.said(lang, n=latest[0]) if latest else missing.said(lang)
        origins.append(called(array) + Words(f" ({origin})", f" （{origin}）").said(lang))
    yield Words("Inputs: ", "代入： ").said(lang) + Words(", ", "、 ").said(lang).join(origins)
    yield displayed(step.inputs)


def _worked(step: Step, lang: str) -> Iterator[str]:
    """Yield a few elements with their arithmetic, and all of them folded away."""
    worth = [n for n in step.numbers if _is_work(n)]
    chosen = worth if len(step.numbers) <= ALL else [n for n in telling(step, FEW) if _is_work(n)]
    if chosen:
        yield _table(chosen, lang)
    if len(worth) > len(chosen):
        summary = Words(f"All {len(step.numbers)} numbers", f"全部 {len(step.numbers)} 个数").said(lang)
        yield f"<details><summary>{summary}</summary>\n\n{_table(step.numbers, lang)}\n\n</details>"


def _is_work(number: Number) -> bool:
    """Say whether a number takes arithmetic: it is neither a copy nor a sum of products that are all 0."""
    return say(number.expression, "en") not in (number.shown, "0")


def _kept(step: Step, lang: str) -> Iterator[str]:
    """Yield the intermediate results that the derivative needs."""
    arrays = [kept for kept in step.kept if not any(np.array_equal(kept.data, x.data) for x in step.arrays)]
    if arrays:
        yield Words("Intermediate results:", "中间结果：").said(lang)
        yield displayed(arrays)


def _results(step: Step, lang: str, brief: bool = False) -> Iterator[str]:
    arrays = [array for array in step.arrays if array.data.ndim or brief]
    if arrays:
        named = [replace(array, letter=letter_of(array.name, array.letter)) for array in arrays]
        words = [called(array) for array in named if array.name and letter_of(array.name) != array.letter]
        result = Words("Result:", "结果：").said(lang)
        yield f"{result} {Words(', ', ' 、 ').said(lang).join(words)}" if words else result
        yield displayed(named)
    elif step.results and not step.arrays:
        yield "\n".join(f"> `{quiet(f'{say(name, lang)} = {rows}')}`" for name, rows in step.results)


def _table(numbers: Iterable[Number], lang: str) -> str:
    return table(Words("Number|Arithmetic|Value", "数|算式|值"), (_row(number, lang) for number in numbers), lang)


def _row(number: Number, lang: str) -> list[str]:
    said = [say(text, lang) for text in (number.label, number.expression, number.shown)]
    return [f"`{quiet(text)}`".replace("|", "\\|") for text in said]
