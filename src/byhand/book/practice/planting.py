"""Makes the mistakes of the catalogue: each replaces a text in the code of one of this process's functions."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from functools import cache
from importlib import import_module
from operator import attrgetter
from types import FunctionType
from typing import Any

import numpy as np

from byhand import equations as _registered  # noqa: F401  (mistakes are planted in equations)
from byhand.book.practice.catalogue import Planted
from byhand.engine.equation import registry
from byhand.equations.transpose import transpose

# What planted code may name besides the function's own globals.
HELP = {"np": np, "registry": registry, "transpose": transpose}


def function_of(where: str) -> FunctionType:
    """Return the function in which a mistake is planted."""
    stem, colon, name = where.partition(":")
    if colon:
        return attrgetter(name)(import_module(stem))
    stem, _, half = where.partition(".")
    return getattr(registry[stem], half)


@cache
def source_of(where: str) -> str:
    """Return the function's source, without its indentation."""
    return textwrap.dedent(inspect.getsource(function_of(where)))


@contextmanager
def planted(*mistakes: Planted) -> Iterator[None]:
    """Make the mistakes, of this process's functions; ValueError if a text is not there, or not any more."""
    by_place: dict[str, list[Planted]] = {}
    for mistake in mistakes:
        by_place.setdefault(mistake.where, []).append(mistake)
    made = {where: code_of(where, found) for where, found in by_place.items()}
    kept = {where: function_of(where).__code__ for where in made}
    try:
        for where, code in made.items():
            function = function_of(where)
            function.__code__ = code
        yield
    finally:
        for where, code in kept.items():
            function_of(where).__code__ = code


def changed(mistake: Planted) -> tuple[list[str], list[str]]:
    """Return the lines of the function that a mistake changes, right and wrong."""
    right, wrong = source_of(mistake.where).splitlines(), _text(mistake.where, [mistake]).splitlines()
    moves = [line for line in unified_diff(right, wrong, n=0, lineterm="") if line[:3] not in ("---", "+++")]
    return tuple([line[1:] for line in moves if line.startswith(sign)] for sign in "-+")  # pyright: ignore[reportReturnType]


def _text(where: str, mistakes: Sequence[Planted]) -> str:
    """Return a function's source with every text replaced."""
    indent, text = " " * 4 * (where.rpartition(":")[2].count(".") if ":" in where else 0), source_of(where)
    for mistake in mistakes:
        old, new = (part.replace(f"\n{indent}", "\n") for part in (mistake.old, mistake.new))
        if old not in text:
            raise ValueError(f"{where} does not say {old!r}.")
        text = text.replace(old, new)
    return text


def code_of(where: str, mistakes: Sequence[Planted]) -> Any:
    """Return a function's code with every text replaced."""
    function, space = function_of(where), dict[str, Any]()
    function.__globals__.update({n: v for n, v in HELP.items() if n not in function.__globals__})
    compiled = compile(_text(where, mistakes), where, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    exec(compiled, dict(function.__globals__), space)
    return space[function.__name__].__code__
