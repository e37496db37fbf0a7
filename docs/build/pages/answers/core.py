"""Answers about the matrix core: its arrays and gradients, and its loss with a number changed."""

from typing import Any

import numpy as np

from byhand.book.lessons.examples import matrix_core, numbers
from byhand.book.lessons.examples.matrix_core import GIVEN, given_weights
from byhand.book.pictures.passes import pass_of
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.mix import mix
from byhand.equations.softmax import softmax


def core(name: str) -> np.ndarray:
    """Return an array of the matrix core's pass."""
    return np.squeeze(pass_of("matrix-core").trace.values[name])


def core_gradient(name: str) -> np.ndarray:
    """Return the gradient of an array of the matrix core."""
    return np.squeeze(pass_of("matrix-core").by_name[name])


def core_loss(name: str, index: tuple[int, ...], step: float) -> float:
    """Return the matrix core's loss with one number changed: a weight, a score or a logit."""
    array = numbers(exact=False)
    if name in GIVEN:
        weights = given_weights(array)
        weights[name].data[index] += step
        return matrix_core.loss_of(weights, array).item()
    known: dict[str, Any] = {k: np.array(x, dtype=float) for k, x in pass_of("matrix-core").trace.values.items()}
    known[name][(*(0,) * (known[name].ndim - len(index)), *index)] += step
    if name == "S":
        known["z"] = mix.forward(softmax.forward(known["S"])[0], known["V"])[0][..., :1, :]
    return float(cross_entropy.forward(known["z"], np.array([[GIVEN["y"]]]))[0])
