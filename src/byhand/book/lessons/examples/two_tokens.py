"""Two tokens: the matrix core as the first page works it, with softmax and −ln p as textbooks write them.

Its numbers are those of `matrix-core`, whose arithmetic first subtracts each row's largest number, as the code does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from byhand.book.lessons.changes import Choices, Given
from byhand.book.lessons.examples import matrix_core
from byhand.book.lessons.lesson import Content, Maker, Step, listed
from byhand.book.words.language import Words
from byhand.engine.terms import Index, Term, element, function, of_row, ratio, total
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.softmax import softmax

GIVEN: Given = {name: x for name, x in matrix_core.GIVEN.items() if name != "causal"}
CHOICES: Choices = {"y": (0, 1)}
WHY = {
    "softmax": Words(
        "exp makes each score positive and keeps their order; dividing by the sum turns them into fractions of the whole.",
        "exp 使每个分数变为正数且保持大小顺序；再除以总和，就成为各自的份额。",
    ),
    "cross_entropy": Words(
        "−ln p is 0 for p = 1 and grows without bound as p approaches 0: p = 0.01 costs 4.6.",
        "p = 1 时 −ln p 为 0；p 越接近 0，它越大，没有上限：p = 0.01 时是 4.6。",
    ),
}


def _share(place: Sequence[int], row: int, i: int, inputs: Any, name: str, label: str = "") -> Term:
    """Return exp(x[i]) over the sum of exp(x); each exponential and the sum are parts with names."""

    def exponential(j: int) -> Term:
        at = (*place, j)
        return function("exp", element(inputs, 0, at, name), f"E[{','.join(map(str, at))}]")

    powers = [exponential(j) for j in range(row)]
    return ratio(powers[i], of_row(total(powers, "sum")), label)


def _weight(index: Index, inputs: Any, result: Any) -> Term:
    *place, i = index
    return _share(place, inputs[0].shape[-1], i, inputs, "x")


def _loss(index: Index, inputs: Any, result: Any) -> Term:
    logits, targets = inputs
    chance = _share((0,) * targets.ndim, logits.shape[-1], int(targets.flat[0]), inputs, "z", "p")
    return function("negative", function("log", chance))


def _chance(which: int, index: Index, inputs: Any) -> Term:
    logits, targets = inputs
    return _share((0,) * targets.ndim, logits.shape[-1], index[-1], inputs, "z")


PLAIN_SOFTMAX = softmax.restated(
    latex=r"p_{t,i} = \frac{e^{x_{t,i}}}{\sum_j e^{x_{t,j}}}",
    terms=_weight,
)
PLAIN_LOSS = cross_entropy.restated(
    latex=r"L = -\ln p_y, \quad p_v = \frac{e^{z_v}}{\sum_u e^{z_u}}",
    terms=_loss,
    saved_terms=_chance,
)


@listed(8, "Two tokens: attention, loss and one update", "两个词元：注意力、损失与一次更新")
def lesson(array: Maker, start: Given = GIVEN) -> Content:
    """The matrix core without a mask and with one target."""
    intro, steps, given = matrix_core.lesson(array, {**start, "causal": 0}, (PLAIN_SOFTMAX, PLAIN_LOSS))
    return intro, [_with_reason(step) for step in steps], given


def _with_reason(step: Step) -> Step:
    why = None if step.is_derivative else WHY.get(step.stem)
    return replace(step, why=why, reason=why) if why else step
