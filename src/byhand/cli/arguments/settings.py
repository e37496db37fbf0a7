"""The fields of a command's dataclass as flags and positional arguments."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import tyro

from byhand.cli.terminal.shown import quoted, shown
from byhand.errors import ByhandError

Record = TypeVar("Record")
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]  # a flag without a second one, --no-...
METAVARS = {int: "INT", float: "FLOAT", str: "STR"}


@dataclass(frozen=True)
class ValueOptional:
    """Marks a flag that may stand alone: the next word is its value only if it has one of these endings."""

    endings: tuple[str, ...]


class Setting:
    """A field: its flag, its kind (a type, or a tuple of choices), and how it is written.

    many       it takes any number of words
    negatable  a boolean with a second flag, --no-...
    optional   it may stand without a value, and then has that of an empty word
    """

    def __init__(self, owner: type, field: Field[Any], hint: Any) -> None:
        self.name, self._owner = field.name, owner
        self.flag = flag(field.name)
        self.required = field.default is MISSING and field.default_factory is MISSING
        markers = getattr(hint, "__metadata__", ())
        plain = get_args(hint)[0] if markers else hint
        if type(None) in get_args(plain):  # int | None, or a choice that may be left out
            plain = get_args(plain)[0]
        parts = get_args(plain)
        self.kind: Any = parts if get_origin(plain) is Literal else parts[0] if parts else plain
        self.many = get_origin(plain) is tuple
        self.positional = tyro.conf.Positional in markers
        self.optional = next((m for m in markers if isinstance(m, ValueOptional)), None)
        self.negatable = self.kind is bool and tyro.conf.FlagCreatePairsOff not in markers

    def takes(self, word: str) -> bool:
        """Return whether a word after the flag can be its value."""
        return self.optional is None or word.endswith(self.optional.endings)

    def value(self, words: list[str]) -> Any:
        """Return the value that the words stand for; ByhandError if there is none."""
        return tuple(map(self._single, words)) if self.many else self._single(words[0] if words else "")

    def _single(self, word: str) -> Any:
        if isinstance(self.kind, tuple):
            choices = {str(choice): choice for choice in self.kind}
            if word in choices:
                return choices[word]
            raise ByhandError(
                f"invalid choice {quoted(word)} for argument '{self.flag}'. Expected one of {tuple(choices)}."
            )
        if self.kind is bool:
            return word == "True"
        try:
            return self.kind(word)
        except ValueError:
            if self.kind is int and re.fullmatch(r"\s*[-+]?\d+\s*", word):
                why = f"{shown(word, 20)} has {len(word):,} digits. Use a smaller number."
            else:
                kind = "an integer" if self.kind is int else "a number"
                why = f"{shown(word, 60) or 'without a value'} is not {kind}."
            raise ByhandError(f"{self.flag} {why}") from None

    def described(self) -> str:
        """Return how a required setting is written, and the string below its field."""
        body: Any = ast.parse(textwrap.dedent(inspect.getsource(self._owner))).body[0]
        texts = {below.value.value for field, below in pairwise(body.body)
                 if isinstance(field, ast.AnnAssign) and ast.unparse(field.target) == self.name}  # fmt: skip
        kind = METAVARS.get(self.kind, "PATH")
        return f"{kind if self.positional else f'{self.flag} {kind}'} {' '.join(texts)} (required)"


def flag(name: str) -> str:
    """Return a setting's flag; `from_` is `--from`, which no field can be called."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def settings(options: Any) -> dict[str, Setting]:
    """Return the settings of a dataclass, and of the dataclasses in it, by name."""
    hints = get_type_hints(options, include_extras=True)
    found: dict[str, Setting] = {}
    for f in fields(options):
        hint = hints[f.name]
        found |= settings(hint) if is_dataclass(hint) else {f.name: Setting(options, f, hint)}
    return found


def overridden(record: Record, values: dict[str, Any]) -> Record:
    """Return a dataclass with other values of some fields, its own or those of the dataclasses in it."""
    changed: dict[str, Any] = {}
    for f in fields(record):  # pyright: ignore[reportArgumentType]
        inner = getattr(record, f.name)
        new = overridden(inner, values) if is_dataclass(inner) else values.get(f.name, inner)
        if new is not inner:
            changed[f.name] = new
    return replace(record, **changed) if changed else record  # pyright: ignore[reportArgumentType]
