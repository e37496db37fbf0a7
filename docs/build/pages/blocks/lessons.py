"""Generated worked examples: the steps of a lesson as Markdown.

Each step has its goal, its formula, the arrays that are put in, a few elements worth doing, the result, and why; the
other elements are folded away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from byhand.book.lessons import examples
from byhand.book.lessons.lesson import Array, Number, Step
from byhand.book.lessons.letters import PARAMETERS, PARTIAL, letter
from byhand.book.words.language import Words, say
from byhand.book.words.plain_math import translated
from byhand.engine.equation import registry
from pages.blocks.arrays import LISTED, called, displayed, given_parts, matrix_of, quiet, rounded
from pages.blocks.markdown import QUAD, display, display_lines, inline, link, link_equation
from pages.blocks.step_rows import few_rows, rows_of, worked_rows
from pages.path import STOPS

NEAR = 3  # steps back to which a reader looks for an array that is not printed again
GOAL, WHY = Words("**Goal.** ", "**目的**："), Words("**Why.** ", "**原因**：")
GIVEN, MADE = Words("given", "已知"), Words("step {n}", "第 {n} 步")
ONE, ZERO = Words("always 1", "总是 1"), Words("0 at the start", "起初为 0")
BEFORE = Words("of the update before", "上一次更新的")
KEPT, NEW = Words("saved by step {n}", "第 {n} 步保留"), Words("with the new weights", "由新权重算出")
SAME = Words("Result: {results}; the numbers stay as they are.", "结果（数都不变）： {results}")
BLOCK = re.compile(r"<!-- generated: lesson (\S+)(?: ([\d,-]+))?(?: (\w+))? -->")


def lesson(page: Path, lang: str, name: str, steps: str = "", form: str = "") -> str:
    """The steps of a worked example, such as `2-5` or `4,7`; in the form `brief` only their results.

    The form `plain` has the formula, the arithmetic of row 0 and the results, and rounds all lessons of its page to
    two decimals. The form `few` is for a page behind others: what these gave reasons for is not explained again, and
    arithmetic that the page did before is folded. A reason, and an array made just before, stand once.
    """
    whole = examples.make(name).steps
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    shown = _Shown(lang, page)
    forms = {"brief": shown.brief, "plain": shown.plain, "few": shown.few}
    if form == "few":
        shown.told |= told_before(page)
    for other in BLOCK.finditer(text):
        if other.groups(default="") == (name, steps, form):
            break
        before = examples.make(other[1]).steps
        for n in chosen(other[2] or "", len(before)):
            if other[1] == name:
                shown.far(n, before, other[3] == "brief")
            if other[3] != "brief":
                shown.tell(before[n - 1])
    said = "\n\n".join(forms.get(form, shown.full)(n, whole) for n in chosen(steps, len(whole)))
    return rounded(said) if is_plain(text) else said


def told_before(page: Path) -> set[Words]:
    """Return the reasons that the pages to read before a page give, and those before them."""
    told: set[Words] = set()
    name, _, suffix = page.name.partition(".")
    for earlier in STOPS[name].earlier if name in STOPS else ():
        before = page.with_name(f"{earlier}.{suffix}")
        told |= told_before(before)
        for mark in BLOCK.finditer(before.read_text(encoding="utf-8")):
            steps = examples.make(mark[1]).steps
            shown = chosen(mark[2] or "", len(steps)) if mark[3] not in ("brief", "plain") else []
            told |= {reason for n in shown if (reason := steps[n - 1].reason or steps[n - 1].why)}
    return told


def is_plain(text: str) -> bool:
    """Return whether the lessons of a page have two decimals."""
    return any(mark[3] == "plain" for mark in BLOCK.finditer(text))


def chosen(steps: str, last: int) -> list[int]:
    """Return the numbers that `2-5,7` names; all of them for none."""
    parts = (part.partition("-") for part in steps.split(",")) if steps else (("1", "-", str(last)),)
    return [n for first, _, end in parts for n in range(int(first), int(end or first) + 1)]


def lesson_intro(page: Path, lang: str, name: str) -> str:
    """The purpose of a worked example, and the command that starts it."""
    doing = Words(
        f"Do it yourself: `byhand work {name} --quiz`", f"自己做一遍：`byhand work {name} --quiz --lang zh`"
    ).said(lang)
    return f"{examples.make(name).intro.said(lang)}\n\n{doing}"


def given(page: Path, lang: str, name: str) -> str:
    """The arrays and settings that a worked example starts from, as fractions and roots if they have that form."""
    arrays = [(say(array, "en"), numbers) for array, numbers in examples.make(name, exact=True).given]
    parts = [part for array, numbers in arrays for part in given_parts(letter(array), numbers)]
    lines = display_lines([f"{name} = {latex}" for name, latex, _ in parts])
    named = [f"{inline(letter(array))} = `{array}`" for array, _ in arrays if array in PARAMETERS]
    if not named:
        return lines
    names = LISTED.said(lang).join(named)
    return f"{lines}\n\n{Words('In the code: ', '代码中： ').said(lang)}{names}"


@dataclass
class _Shown:
    """How a page shows the steps of a lesson: its language, and what it said before.

    printed  the step at which each array was last printed, by letter; `told` the reasons; `done` the equations
    """

    lang: str
    page: Path
    printed: dict[str, int] = field(default_factory=dict)
    told: set[Words] = field(default_factory=set)
    done: set[tuple[str, bool]] = field(default_factory=set)

    def tell(self, step: Step) -> bool:
        """Note a step's reason and its equation; return whether the reason is new."""
        reason = step.reason or step.why
        is_new = reason is not None and reason not in self.told
        self.told |= {reason} if reason else set()
        self.done.add(_kind(step))
        return is_new

    def far(self, n: int, steps: Sequence[Step], brief: bool = False) -> list[Array]:
        """Return the inputs of a step that no step just before printed, and note what this one prints."""
        step = steps[n - 1]
        inputs = () if brief else _each(step)
        far = [x for x in inputs if not x.data.ndim or self.printed.get(x.letter, 0) < max(1, n - NEAR)]
        self.printed.update((x.letter, n) for x in (*far, *step.arrays))
        return far

    def brief(self, n: int, steps: Sequence[Step]) -> str:
        """Return a step's title and results."""
        self.far(n, steps, True)
        step = steps[n - 1]
        if step.is_derivative:
            letters = LISTED.said(self.lang).join(x.label.removeprefix("∂") for x in step.arrays)
            step = replace(step, title=Words(f"Gradient of {letters}", f"{letters} 的梯度"))
        results = [displayed(step.arrays)] if step.arrays else _results(step, self.lang)
        return "\n\n".join([self._title(n, step, False), *results])

    def plain(self, n: int, steps: Sequence[Step]) -> str:
        """Return a step's formula, the arithmetic of row 0, and its results."""
        step = steps[n - 1]
        self.far(n, steps, True)
        rows = any("," in say(number.label, "en") for number in step.numbers)
        first = [x for x in step.numbers if not (rows and re.search(r"\[[1-9]", say(x.label, "en")))]
        parts = [self._title(n, step, False), _formula(step, self.lang), rows_of(first, self.lang)]
        return "\n\n".join([*parts, *([displayed(step.arrays)] if step.arrays[0].data.ndim else [])])

    def full(self, n: int, steps: Sequence[Step]) -> str:
        """Return a step as it is done on paper."""
        step, lang = steps[n - 1], self.lang
        product = _first_product(step) if (copies := _only_copies(step)) else None
        moves = copies and not product
        parts = [self._title(n, step, True)]
        if step.goal and not (moves and step.is_derivative):
            parts.append(GOAL.said(lang) + step.goal.said(lang))
        parts.append(_formula(step, lang))
        if moves:
            parts += [*self._far(n, steps), SAME.said(lang, results=called(step.arrays, lang))]
        else:
            rows = [rows_of([product], lang)] if product else worked_rows(step, lang)
            parts += [*self._put_in(n, steps), *_kept(step, lang), *rows, *_results(step, lang)]
        if self.tell(step) and step.why:
            parts.append(WHY.said(lang) + step.why.said(lang))
        return "\n\n".join(parts)

    def few(self, n: int, steps: Sequence[Step]) -> str:
        """Return a step for readers who did such steps before: what they have read, or computed, is folded or left out."""
        step, lang = steps[n - 1], self.lang
        is_known, is_told = _kind(step) in self.done, not self.tell(step)
        goal = [GOAL.said(lang) + step.goal.said(lang)] if step.goal and not (is_told or step.is_derivative) else []
        parts = [self._title(n, step, step.stem not in registry), *goal]
        product = _first_product(step) if (copies := _only_copies(step)) else None
        seen, far = set(self.printed), self.far(n, steps)
        hides = is_known and step.is_derivative  # the weights too
        old = [x for x in far if x.data.ndim and (hides or x.letter in seen)]
        new = [x for x in far if x.letter not in seen and x not in old]
        folded, formula = ([displayed(old)] if old else []), [_formula(step, lang)]
        if is_known and QUAD in step.latex and not copies:
            folded, formula = formula + folded, []
        parts += formula
        if copies and not product:
            parts.append(SAME.said(lang, results=called(step.arrays, lang)))
        else:
            rows = [rows_of([product], lang)] if product else few_rows(step, lang, is_known, folded)
            parts += [*self._inputs(n, steps), *([displayed(new)] if new else []), *_kept(step, lang), *rows]
            parts += _results(step, lang)
        if not is_told and step.why:
            parts.append(WHY.said(lang) + step.why.said(lang))
        return "\n\n".join(parts)

    def _title(self, n: int, step: Step, has_place: bool) -> str:
        title = step.title.said(self.lang)
        if step.stem in registry:
            title = f"[{title}]({link_equation(self.page, step.stem, self.lang).rpartition('(')[2]}"
        place = f" · {link(self.page, step.where)}" if step.where and has_place else ""
        return f"**{n}.** {title}{place}"

    def _put_in(self, n: int, steps: Sequence[Step]) -> Iterator[str]:
        """Yield the inputs' letters with the earlier steps that made them, and the arrays that are far."""
        yield from self._inputs(n, steps)
        yield from self._far(n, steps)

    def _inputs(self, n: int, steps: Sequence[Step]) -> Iterator[str]:
        origins: dict[str, list[str]] = {}
        for array in _each(steps[n - 1]):
            origins.setdefault(self._origin(array, n, steps), []).append(inline(array.letter))
        named = (
            LISTED.said(self.lang).join(letters) + Words(f" ({x})", f" （{x}）").said(self.lang)
            for x, letters in origins.items()
        )
        if origins:
            yield Words("Inputs: ", "代入： ").said(self.lang) + Words("; ", "； ").said(self.lang).join(named)

    def _far(self, n: int, steps: Sequence[Step]) -> Iterator[str]:
        if far := self.far(n, steps):
            yield displayed(far)

    def _origin(self, array: Array, n: int, steps: Sequence[Step]) -> str:
        """Return where an array comes from: the step that made or saved it, or what is known of it."""
        step, before = steps[n - 1], [*enumerate(steps[: n - 1], 1)]
        if made := [k for k, x in before if array.letter in {y.letter for y in x.arrays}]:
            return MADE.said(self.lang, n=made[-1])
        read = {x.letter for x in step.inputs}
        own = [k for k, x in before if x.stem == step.stem and read & {PARTIAL + y.letter for y in x.arrays}]
        if own and not array.name and array.data.ndim:
            return KEPT.said(self.lang, n=own[-1])
        if array.letter.startswith(PARTIAL) and not array.data.ndim:
            return ONE.said(self.lang)
        if "t-1" in array.letter:
            return (BEFORE if np.any(array.data) else ZERO).said(self.lang)
        return (NEW if array.name.startswith("after.") else GIVEN).said(self.lang)


def _kind(step: Step) -> tuple[str, bool]:
    """Return what steps of the same arithmetic share."""
    return step.stem or step.where, step.is_derivative


def _each(step: Step) -> list[Array]:
    """Return a step's inputs, each once: a query may be its own key."""
    return list({array.letter: array for array in step.inputs}.values())


def _only_copies(step: Step) -> bool:
    """Return whether a step's results are its inputs, or parts of one, or one of several side by side."""
    made, read = ([x.data for x in arrays if x.data.ndim > 1] for arrays in (step.arrays, step.inputs))
    if not made or len(made) < len(step.arrays) or not read:
        return False
    if all(any(np.array_equal(x, y) for y in read) for x in made):
        return True
    rows = {x.shape[:-1] for x in (*made, *read)}
    return len(rows) == 1 and np.array_equal(np.concatenate(made, axis=-1), np.concatenate(read, axis=-1))


def _first_product(step: Step) -> Number | None:
    """Return the first number of a step that multiplies, with its arithmetic in letters too."""
    return next((n for n in step.numbers if n.whole and "×" in n.letters), None)


def _formula(step: Step, lang: str) -> str:
    """Return the formula of a step: in LaTeX for an equation, otherwise in plain text."""
    return display(translated(step.latex, lang)) if step.latex else f"> {say(step.formula, lang)}"


def _kept(step: Step, lang: str) -> Iterator[str]:
    """Yield the intermediate results that the derivative needs."""
    arrays = [kept for kept in step.kept if not any(np.array_equal(kept.data, x.data) for x in step.arrays)]
    if arrays:
        yield Words("Intermediate results:", "中间结果：").said(lang)
        yield displayed(arrays)


def _results(step: Step, lang: str) -> Iterator[str]:
    arrays = [array for array in step.arrays if array.data.ndim]
    if arrays:
        yield Words("Result:", "结果：").said(lang)
        yield displayed(arrays)
    elif step.results and not step.arrays:
        yield "\n".join(f"> `{quiet(f'{say(name, lang)} = {rows}')}`" for name, rows in step.results)
