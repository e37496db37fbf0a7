"""Generated tables of changes: values and slopes of a function, gradients checked by a nudge, examples changed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from byhand.book.lessons.examples import make, numbers
from byhand.book.lessons.examples.matrix_core import GIVEN, given_weights, loss_of
from byhand.book.lessons.letters import letter as letter_of
from byhand.book.numbers.arithmetic import decimal
from byhand.book.numbers.closed_form import value
from byhand.book.pages.blocks.arrays import matrix_of
from byhand.book.pages.blocks.markdown import Rows, block, decimals, display_lines, inline, table, table_block
from byhand.book.words.language import Words
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.mix import mix
from byhand.equations.softmax import softmax
from byhand.errors import ByhandError
from byhand.tracing.gradients import Gradients
from byhand.tracing.settled import settled_backward
from byhand.tracing.trace import Trace

FUNCTIONS: dict[str, tuple[str, Callable[[float], float]]] = {
    "sqrt": (r"\sqrt{x}", math.sqrt),
    "exp": ("e^x", math.exp),
    "ln": (r"\ln x", math.log),
    "tanh": (r"\tanh x", math.tanh),
}
NUDGE = 0.001
UNCHANGED = Words(r"\text{ (unchanged)}", r"\text{（不变）}")
ELEMENT = re.compile(r"([\w']+)\[([\d,]+)\]")


@block
def values(page: Path, lang: str, name: str, *at: str) -> str:
    """A function's values at these numbers."""
    latex, function = FUNCTIONS[name]
    return _across(lang, at, ((inline(latex), function),))


@block
def slopes(page: Path, lang: str, name: str, *at: str) -> str:
    """A function's values at these numbers, and its change per change when they are nudged both ways."""
    latex, function = FUNCTIONS[name]

    def slope(x: float) -> float:
        return (function(x + NUDGE) - function(x - NUDGE)) / (2 * NUDGE)

    return _across(lang, at, ((inline(latex), function), (Words("change per change", "变化率"), slope)))


def _across(lang: str, at: tuple[str, ...], rows: tuple[tuple[object, Callable[[float], float]], ...]) -> str:
    head = "|".join((inline("x"), *at))
    return table(
        Words(head, head), ((said, *(decimal(function(value(x)), 4) for x in at)) for said, function in rows), lang
    )


@table_block(
    f"Number|Loss, {NUDGE:g} more|Loss, {NUDGE:g} less|Difference / {2 * NUDGE:g}|Gradient by the rules",
    f"数|加 {NUDGE:g} 后的损失|减 {NUDGE:g} 后的损失|差 / {2 * NUDGE:g}|按规则得到的梯度",
)
def nudged(*elements: str) -> Rows:
    """Elements of the matrix core, such as `z[0]` or `W_Q[0,0]`, nudged both ways: loss, slope, gradient."""
    for written in elements:
        found = ELEMENT.fullmatch(written)
        if found is None:
            raise ByhandError(f"{written!r} is no element of the matrix core. Write it like W_Q[0,0].")
        name, index = found[1], tuple(map(int, found[2].split(",")))
        gradient = np.squeeze(_core().by_name[name])[index]
        more, less = (_loss(name, index, step) for step in (NUDGE, -NUDGE))
        yield f"`{written}`", f"{more:.8f}", f"{less:.8f}", decimals((more - less) / (2 * NUDGE)), decimals(gradient)


@table_block("Number|Arithmetic|Value", "数|算式|值")
def nudged_score(row: str, column: str) -> Rows:
    """What a nudge of one score changes: each weight of its row, and with these the loss."""
    i, h = int(column), decimal(NUDGE)
    p, slopes = (np.squeeze(x[name])[int(row)] for x, name in ((_core().trace.values, "P"), (_core().by_name, "P")))
    parts = []
    for j, weight in enumerate(p):
        own = f"{h} × {decimal(weight)} − " if i == j else "−"
        change = NUDGE * float(weight) * ((i == j) - float(p[i]))
        yield f"`ΔP[{row},{j}]`", f"`{own}{h} × {decimal(p[i])} × {decimal(weight)}`", f"`{decimal(change)}`"
        parts.append((f"{decimal(slopes[j])} × {_held(decimal(change))}", float(slopes[j]) * change))
    total = decimal(sum(value for _, value in parts))
    yield "`ΔL`", f"`{' + '.join(text for text, _ in parts)}`", f"`{total}`"
    yield "`ΔL / h`", f"`{total} / {h}`", f"`{decimal(sum(value for _, value in parts) / NUDGE)}`"


def _held(number: str) -> str:
    return f"({number})" if number.startswith("−") else number


@cache
def _core() -> Gradients:
    array = numbers(exact=False)
    return settled_backward(Trace.of(lambda: loss_of(given_weights(array), array)), array(1))


def _loss(name: str, index: tuple[int, ...], step: float) -> float:
    """Return the matrix core's loss with one number changed: a weight, a score or a logit."""
    array = numbers(exact=False)
    if name in GIVEN:
        weights = given_weights(array)
        weights[name].data[index] += step
        return loss_of(weights, array).item()
    known = {key: np.array(x, dtype=float) for key, x in _core().trace.values.items()}
    known[name][(*(0,) * (known[name].ndim - len(index)), *index)] += step
    if name == "S":
        rows = mix.forward(softmax.forward(known["S"])[0], known["V"])[0]
        known["z"] = rows[..., :1, :]
    return float(cross_entropy.forward(known["z"], np.array([[GIVEN["y"]]]))[0])


@block
def changed(page: Path, lang: str, name: str, *words: str) -> str:
    """Arrays of a worked example as they are, and what changes make of them: `changed matrix-core W_K=W_Q P loss`."""
    changes = tuple(word for word in words if "=" in word)
    plain, now = (dict(_arrays(make(name, changes=c))) for c in ((), changes))
    return display_lines(
        [line for key, letter in _asked(words, plain) for line in _lines(letter, plain[key], now[key], lang)]
    )


def _lines(letter: str, before: Any, now: Any, lang: str) -> Iterator[str]:
    """Yield an array and, unless it stays, what it becomes: below each other, since a telephone is narrow."""
    known, new = _shown(before), _shown(now)
    if known == new:
        yield f"{letter} = {known} {UNCHANGED.said(lang)}"
    elif np.ndim(before) == 0:
        yield rf"{letter} = {known} \; \to \; {new}"
    else:
        yield from (f"{letter} = {known}", rf"\quad \to \; {new}")


def _asked(words: tuple[str, ...], there: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for word in words:
        if "=" not in word:
            if word not in there:
                raise ByhandError(f"the example has no array {word!r}. Use one of {', '.join(there)}.")
            yield word, letter_of(word)


def _arrays(lesson: Any) -> Iterator[tuple[str, Any]]:
    return ((array.name, array.data) for step in lesson.steps for array in (*step.inputs, *step.arrays))


def _shown(data: Any) -> str:
    rows = np.asarray(data, dtype=float)
    return r",\; ".join(map(_shown, rows)) if rows.ndim > 2 else matrix_of(rows)
