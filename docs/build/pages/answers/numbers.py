"""Answers of the code: what a definition holds, by its place; what an equation computes, by its stem."""

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from byhand.engine.equation import registry
from byhand.errors import ByhandError

bytes_of = str.encode


def the(place: str) -> Any:
    """Return what a definition of the package holds, by its place: `the("schedule.py:learning_rate")`."""
    path, _, names = place.partition(":")
    try:
        found: Any = import_module(f"byhand.{path.removesuffix('.py').replace('/', '.')}")
        for name in names.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        raise ByhandError(f"there is no {place} in src/byhand. Correct the place.") from None
    return found


def array(numbers: Any, dtype: str = "float") -> np.ndarray:
    """Return numbers as an array, on which templates may calculate."""
    return np.array(numbers, dtype)


def forward(stem: str, *inputs: Any, **static: Any) -> Any:
    """Return the result of an equation, by its stem; sequences of numbers are arrays."""
    return registry[stem].forward(*map(_array, inputs), **static)[0]


def shares(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the exponentials of numbers and these divided by their sum, in float64 with its overflow."""
    with np.errstate(all="ignore"):
        powers = np.exp(array(x))
        return powers, powers / powers.sum()


def vjp(stem: str, d_result: Any, *inputs: Any, **static: Any) -> tuple[Any, ...]:
    """Return the gradients of an equation's inputs for a gradient of its result."""
    arrays = [*map(_array, inputs)]
    return registry[stem].vjp(registry[stem].forward(*arrays, **static)[1], _array(d_result), **static)


def _array(given: Any) -> Any:
    return array(given) if isinstance(given, list | tuple) else given
