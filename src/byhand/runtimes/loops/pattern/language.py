"""Patterns: one readable line that matches the applications a rule covers.

residual(stream, linear(x, transpose({w}) | w))

name(x, ...)     an application of this equation, or of one of several: `a/b(...)`. Omitted inputs, and inputs that
                 an application lacks, match anything
name?(x, ...)    the same, or x alone
name(x, ...).1   its result number 1; all occurrences in a pattern are the same application
x | y            the first that fits
word             any array
{word}           a leaf, such as a parameter
<position>       the step's input of this name; <> matches any input
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from byhand.errors import ConfigError

TOKEN = re.compile(r"\s*([a-z_0-9/]+|[?(),|.{}<>])")


@dataclass(frozen=True)
class Anything:
    """Any array."""


@dataclass(frozen=True)
class Leaf:
    """An array that is no application's result."""


@dataclass(frozen=True)
class StepInput:
    """An input of the step; any if the name is empty."""

    name: str


@dataclass(frozen=True)
class Either:
    """The first pattern that fits."""

    options: tuple[Pattern, ...]


@dataclass(frozen=True)
class Applied:
    """An application of one of these equations, and the index of its result."""

    names: tuple[str, ...]
    inputs: tuple[Pattern, ...]
    result: int | None = None


Pattern = Anything | Leaf | StepInput | Either | Applied


@cache
def parsed(line: str) -> Applied:
    """Parse a line; ConfigError if it is not a pattern."""
    words = TOKEN.findall(line)
    if "".join(words) != re.sub(r"\s", "", line):
        raise ConfigError(f"pattern {line!r} has an unknown character.")
    words += ["", "", ""]  # the end, as far as any rule reads ahead
    found = _choice(words)
    if any(words) or not isinstance(found, Applied) or len(found.names) > 1:
        raise ConfigError(f"pattern {line!r} must be one application, with every bracket closed.")
    return found


def applications(pattern: Pattern) -> list[Applied]:
    """Return every application of a pattern, the outermost first."""
    found: dict[int, Applied] = {}
    waiting: list[Pattern] = [pattern]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, Applied) and id(each) not in found:
            found[id(each)] = each
            waiting += each.inputs
        elif isinstance(each, Either):
            waiting += each.options
    return list(found.values())


def names_in(pattern: Pattern) -> list[str]:
    """Return the equations in a pattern, each once."""
    return list(dict.fromkeys(name for each in applications(pattern) for name in each.names))


def _choice(words: list[str]) -> Pattern:
    options = [_one(words)]
    while words[0] == "|":
        words.pop(0)
        options.append(_one(words))
    return options[0] if len(options) == 1 else Either(tuple(options))


def _one(words: list[str]) -> Pattern:
    word = words.pop(0)
    if word == "{":
        words.pop(0)
        _close(words, "}")
        return Leaf()
    if word == "<":
        name = "" if words[0] == ">" else words.pop(0)
        _close(words, ">")
        return StepInput(name)
    optional = words[0] == "?" and bool(words.pop(0))
    if words[0] != "(":
        return Anything()
    inputs = []
    while words[0] in ("(", ","):
        words.pop(0)
        inputs.append(_choice(words))
    _close(words, ")")
    result = int(words.pop(0)) if words[0] == "." and words.pop(0) else None
    made = Applied(tuple(word.split("/")), tuple(inputs), result)
    return Either((made, inputs[0])) if optional else made


def _close(words: list[str], bracket: str) -> None:
    if words[0] != bracket:
        raise ConfigError(f"a pattern has {words[0] or 'its end'!r} instead of {bracket!r}.")
    words.pop(0)
