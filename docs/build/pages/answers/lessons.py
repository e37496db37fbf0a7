"""Answers about the worked examples: their arrays, and the matrix core with a number changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from byhand.book.lessons.examples import make, numbers
from byhand.book.lessons.examples.matrix_core import GIVEN, given_weights, loss_of
from byhand.book.lessons.letters import called, letter
from byhand.book.pictures.passes import attention_of, pass_of
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.mix import mix
from byhand.equations.softmax import softmax
from byhand.errors import ByhandError
from pages.answers.registry import ANSWERS, answer
from pages.blocks.arrays import matrix_of

ANSWERS |= {"attention_of": attention_of, "letter_of": called}


@answer
@cache
def lesson_arrays(name: str, *changes: str) -> dict[str, np.ndarray]:
    """Return the arrays of a worked example by name, with changes as `byhand work --set` takes them."""
    steps = make(name, changes=changes).steps
    return {array.name: array.data for step in steps for array in (*step.inputs, *step.arrays)}


@answer
def changed_arrays(words: tuple[str, ...]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield arrays of a worked example: letter, the array, what it becomes, whether it is a number.

    words  the example's name, changes such as `W_K=W_Q`, and names of arrays; ByhandError for a name that is none
    """
    name, *rest = words
    before, after = lesson_arrays(name), lesson_arrays(name, *(word for word in rest if "=" in word))
    for word in (word for word in rest if "=" not in word):
        if word not in before:
            raise ByhandError(f"the example has no array {word!r}. Use one of {', '.join(before)}.")
        yield letter(word), _matrices(before[word]), _matrices(after[word]), np.ndim(before[word]) == 0


def _matrices(data: Any) -> str:
    rows = np.asarray(data, dtype=float)
    return r",\; ".join(map(_matrices, rows)) if rows.ndim > 2 else matrix_of(rows)


@answer
def core(name: str) -> np.ndarray:
    """Return an array of the matrix core's pass."""
    return np.squeeze(pass_of("matrix-core").trace.values[name])


@answer
def core_gradient(name: str) -> np.ndarray:
    """Return the gradient of an array of the matrix core."""
    return np.squeeze(pass_of("matrix-core").by_name[name])


@answer
def core_loss(name: str, index: tuple[int, ...], step: float) -> float:
    """Return the matrix core's loss with one number changed: a weight, a score or a logit."""
    array = numbers(exact=False)
    if name in GIVEN:
        weights = given_weights(array)
        weights[name].data[index] += step
        return loss_of(weights, array).item()
    known: dict[str, Any] = {k: np.array(x, dtype=float) for k, x in pass_of("matrix-core").trace.values.items()}
    known[name][(*(0,) * (known[name].ndim - len(index)), *index)] += step
    if name == "S":
        known["z"] = mix.forward(softmax.forward(known["S"])[0], known["V"])[0][..., :1, :]
    return float(cross_entropy.forward(known["z"], np.array([[GIVEN["y"]]]))[0])
