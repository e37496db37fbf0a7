"""The registry of what templates may call, and the ways into the code: a definition's place, an equation's stem."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.numbers import closed_form
from byhand.engine.equation import registry
from byhand.errors import ByhandError

Function = TypeVar("Function", bound=Callable[..., Any])
ANSWERS: dict[str, Any] = {
    "math": math, "zip": zip, "enumerate": enumerate, "replace": replace, "bytes_of": str.encode,
    "norm": np.linalg.norm, "svd": np.linalg.svd,
}  # fmt: skip
FORMATS: dict[str, Callable[..., Any]] = {}


def answer(function: Function) -> Function:
    """Register a function as an answer, by its name."""
    return _register(ANSWERS, function)


def format_of(function: Function) -> Function:
    """Register a function (language, value, ...) as a filter of templates, by its name."""
    return _register(FORMATS, function)


def _register(names: dict[str, Any], function: Function) -> Function:
    name = function.__name__.removesuffix("_")
    if name in names:
        raise ValueError(f"two answers are called {name}")
    names[name] = function
    return function


@answer
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


@answer
def array(numbers: Any, dtype: str = "float") -> np.ndarray:
    """Return numbers as an array, on which templates may calculate."""
    return np.array(numbers, dtype)


@answer
def forward(stem: str, *inputs: Any, **static: Any) -> Any:
    """Return the result of an equation, by its stem; sequences of numbers are arrays."""
    return registry[stem].forward(*map(_array, inputs), **static)[0]


@answer
def shares(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the exponentials of numbers and these divided by their sum, in float64 with its overflow."""
    with np.errstate(all="ignore"):
        powers = np.exp(array(x))
        return powers, powers / powers.sum()


@answer
def vjp(stem: str, d_result: Any, *inputs: Any, **static: Any) -> tuple[Any, ...]:
    """Return the gradients of an equation's inputs for a gradient of its result."""
    arrays = [*map(_array, inputs)]
    return registry[stem].vjp(registry[stem].forward(*arrays, **static)[1], _array(d_result), **static)


@answer
def worked_inputs(stem: str) -> dict[str, Any]:
    """Return the inputs of an equation's worked example."""
    return {name: closed_form.array(numbers) for name, numbers in ENTRIES[stem].inputs.items()}


def _array(given: Any) -> Any:
    return array(given) if isinstance(given, list | tuple) else given
