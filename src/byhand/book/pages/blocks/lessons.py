"""Generated worked examples: the steps of a lesson as Markdown.

Each step has its goal, its formula, the arrays that are put in, a few elements worth doing, the result, and why; the
other elements are folded away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from byhand.book.lessons import examples
from byhand.book.lessons.lesson import Number, Step
from byhand.book.lessons.letters import PARAMETERS, PARTIAL, letter
from byhand.book.lessons.text import worked
from byhand.book.pages.blocks.arrays import called, displayed, given_lines, quiet
from byhand.book.pages.blocks.markdown import block, display, display_lines, inline, link, link_equation, table
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
    """The steps of a worked example, such as `2-5`; in the form `brief` only their results.

    Any other form is a capital letter before their numbers, where a page works two examples: `N` makes N2 to N5.
    """
    whole = examples.make(name)
    first, _, last = steps.partition("-")
    numbers = range(int(first or 1), int(last or first or len(whole.steps)) + 1)
    brief = form == "brief"
    named = [f"{'' if brief else form}{n}" for n in range(len(whole.steps) + 1)]
    made: dict[str, list[str]] = {}
    told: set[Words] = set()
    shown = []
    for n, step in enumerate(whole.steps, 1):
        if n in numbers:
            shown.append(_step(page, lang, named[n], step, made, told, brief))
        for array in step.arrays:
            made.setdefault(array.letter, []).append(named[n])
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
    arrays = [(say(array, "en"), numbers) for array, numbers in examples.make(name, exact=True).given]
    lines = display_lines([line for array, numbers in arrays for line in given_lines(letter(array), numbers)])
    named = [f"{inline(letter(array))} = `{array}`" for array, _ in arrays if array in PARAMETERS]
    if not named:
        return lines
    names = Words(", ", "、 ").said(lang).join(named)
    return f"{lines}\n\n{Words('In the code: ', '代码中： ').said(lang)}{names}"


def _step(
    page: Path, lang: str, number: str, step: Step, made: dict[str, list[str]], told: set[Words], brief: bool
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
    parts += [_formula(step, lang), *_put_in(step, lang, made), *_kept(step, lang)]
    parts += [*_worked(step, lang), *_results(step, lang)]
    if step.why and (reason := step.reason or step.why) not in told:
        told.add(reason)
        parts.append(WHY.said(lang) + step.why.said(lang))
    return "\n\n".join(parts)


def _formula(step: Step, lang: str) -> str:
    """Return the formula of a step: in LaTeX for an equation, otherwise in plain text."""
    return display(translated(step.latex, lang)) if step.latex else f"> {say(step.formula, lang)}"


def _put_in(step: Step, lang: str, made: dict[str, list[str]]) -> Iterator[str]:
    """Yield the inputs' letters with the earlier steps that made them, and the arrays."""
    if not step.inputs:
        return
    origins = []
    for array in step.inputs:
        before = made.get(array.letter, [])
        missing = KEPT if not array.name and array.data.ndim else NEW if array.name.startswith("after.") else GIVEN
        if array.letter.startswith(PARTIAL) and not array.data.ndim:
            missing = ONE
        origin = MADE.said(lang, n=before[-1]) if before else missing.said(lang)
        origins.append(called(array) + Words(f" ({origin})", f" （{origin}）").said(lang))
    yield Words("Inputs: ", "代入： ").said(lang) + Words(", ", "、 ").said(lang).join(origins)
    yield displayed(step.inputs)


def _worked(step: Step, lang: str) -> Iterator[str]:
    """Yield a few elements with their arithmetic, and all of them folded away."""
    worth = [n for n in step.numbers if list(worked(n))]
    best = step.numbers if len(step.numbers) <= ALL else telling(step, FEW)
    chosen = [n for n in worth if n.whole or n in best]
    if chosen:
        yield _table(chosen, lang)
    work = [n for n in worth if n in chosen or not _is_nothing(n)]
    if len(work) > len(chosen):
        all_of_them = Words(f"All {len(work)} numbers", f"全部 {len(work)} 个数")
        those = Words(
            f"The {len(work)} numbers that take arithmetic; all others are copied or 0",
            f"需要计算的 {len(work)} 个数；其余的照抄或为 0",
        )
        summary = (all_of_them if len(work) == len(step.numbers) else those).said(lang)
        yield f"<details><summary>{summary}</summary>\n\n{_table(work, lang)}\n\n</details>"


def _is_nothing(number: Number) -> bool:
    """Return whether a number is 0 because all that it is made of is 0, or a sum with 0 alone."""
    text = say(number.expression, "en")
    if re.fullmatch(r"[^ (]+ [+−] 0|0 \+ [^ (]+", text):
        return True
    zero = r"\(?−?0(?: [+−] 0)*\)?"
    return number.value == 0 and bool(re.fullmatch(rf"{zero}|.* × {zero}|{zero} [×/] .*", text))


def _kept(step: Step, lang: str) -> Iterator[str]:
    """Yield the intermediate results that the derivative needs."""
    arrays = [kept for kept in step.kept if not any(np.array_equal(kept.data, x.data) for x in step.arrays)]
    if arrays:
        yield Words("Intermediate results:", "中间结果：").said(lang)
        yield displayed(arrays)


def _results(step: Step, lang: str, brief: bool = False) -> Iterator[str]:
    arrays = [array for array in step.arrays if array.data.ndim or brief]
    if arrays:
        words = [called(array) for array in arrays if array.name != array.label]
        result = Words("Result:", "结果：").said(lang)
        yield f"{result} {Words(', ', ' 、 ').said(lang).join(words)}" if words else result
        yield displayed(arrays)
    elif step.results and not step.arrays:
        yield "\n".join(f"> `{quiet(f'{say(name, lang)} = {rows}')}`" for name, rows in step.results)


def _table(numbers: Iterable[Number], lang: str) -> str:
    return table(Words("Number|Arithmetic|Value", "数|算式|值"), (_row(number, lang) for number in numbers), lang)


def _row(number: Number, lang: str) -> list[str]:
    arithmetic = " = ".join(worked(number, lang)) or say(number.expression, lang)
    said = (say(number.label, lang), arithmetic, number.shown)
    return [f"`{quiet(text)}`".replace("|", "\\|") for text in said]
