"""The fields of a command's dataclass as flags and positional arguments."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from argparse import SUPPRESS, BooleanOptionalAction
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from byhand.cli.terminal.shown import quoted, shown
from byhand.errors import ByhandError
from byhand.formats.names import SPELLED

Record = TypeVar("Record")
Value = TypeVar("Value")
Positional = Annotated[Value, "positional"]
Repeated = Annotated[tuple[Value, ...], "repeated"]  # a flag that may be given several times
Switch = Annotated[bool, "switch"]  # a flag without a --no-... counterpart
METAVARS = {int: "INT", float: "FLOAT", str: "STR"}
AUTO = "auto"
MARK = "\0"  # prefix of a word that argparse must not take for a flag


@dataclass(frozen=True)
class ValueOptional:
    """Marks a flag whose value is optional: the next word is its value only if it has one of these endings."""

    endings: tuple[str, ...]


class Setting:
    """A field as a command-line argument: its flag, its kind (a type, or a tuple of choices), and its syntax.

    many       takes any number of words
    repeated   may be given several times, with one word each
    negatable  a boolean with a --no-... counterpart
    optional   its value may be omitted, which means an empty word
    auto       accepts `auto`, which the command resolves
    """

    def __init__(self, field: Field[Any], hint: Any) -> None:
        self.name = field.name
        self.flag = flag(field.name)
        self.required = field.default is MISSING and field.default_factory is MISSING
        markers = getattr(hint, "__metadata__", ())
        plain = get_args(hint)[0] if markers else hint
        if type(None) in get_args(plain):  # int | None, or a choice that may be left out
            plain = get_args(plain)[0]
        parts = get_args(plain)
        self.kind: Any = parts if get_origin(plain) is Literal else parts[0] if parts else plain
        self.many = any(get_origin(part) is tuple for part in (plain, *parts))
        self.positional = "positional" in markers
        self.repeated = "repeated" in markers
        self.optional = next((m for m in markers if isinstance(m, ValueOptional)), None)
        self.auto = "auto" in field.metadata
        self.negatable = self.kind is bool and "switch" not in markers
        choices = f"{{{','.join(map(str, self.kind))}}}" if isinstance(self.kind, tuple) else ""
        self.metavar = (
            self.name.upper()
            if self.positional
            else choices or METAVARS.get(self.kind, getattr(self.kind, "metavar", "PATH"))
        )
        self.written = self.metavar if self.positional else f"{self.flag} {self.metavar}"

    def argument(self) -> dict[str, Any]:
        """Return the keyword arguments of argparse's `add_argument`."""
        if self.kind is bool:
            action = BooleanOptionalAction if self.negatable else "store_true"
            return {"dest": self.name, "action": action, "default": SUPPRESS}
        if self.repeated:
            return {"dest": self.name, "type": self.value, "action": "append", "metavar": self.metavar}
        nargs = "*" if self.many else "?" if self.optional else None
        return {"dest": self.name, "type": self.value, "nargs": nargs, "metavar": self.metavar}

    def value(self, word: str) -> Any:
        """Parse a word; ByhandError if it is not valid."""
        word = word.removeprefix(MARK)
        if self.auto and word == AUTO:
            return AUTO
        if isinstance(self.kind, tuple):
            choices = {str(choice): choice for choice in self.kind}
            plain = SPELLED.get(word.lower(), word.lower())  # F16 as in files, bf16 as in llama.cpp
            if found := next((name for name in (word, plain) if name in choices), None):
                return choices[found]
            raise ByhandError(f"{self.flag} is {quoted(word)}, but must be one of {', '.join(choices)}.")
        if self.kind is Path and "://" in word:  # a path would lose a slash
            raise ByhandError(
                f"{quoted(word)} is an address, and byhand downloads nothing. Save it and name the file."
            )
        if self.kind is Path and not (word or self.optional or self.positional):  # it would be the current folder
            raise ByhandError(f"{self.flag} names no folder or file. Name one, or leave {self.flag} out.")
        try:
            return self.kind(word)
        except ValueError:
            if self.kind is int and re.fullmatch(r"\s*[-+]?\d+\s*", word):
                why = f"{shown(word, 20)} has {len(word):,} digits. Use a smaller number."
            else:
                kind = {int: "an integer", float: "a number"}.get(self.kind, self.metavar)
                why = f"{shown(word, 60) or 'without a value'} is not {kind}."
            raise ByhandError(f"{self.flag} {why}") from None

    def with_default(self, text: str, default: Any) -> str:
        """Return its help text followed by its default."""
        if self.required:
            return f"{text} (required)"
        told = default not in (None, "", ()) and (self.kind is not bool or self.negatable)
        written = "a space" if default == " " else shown(default, 60)
        return f"{text} (default: {written})" if told else text


def flag(name: str) -> str:
    """Return a setting's flag; `from_` gives `--from`, a keyword that no field can have as its name."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def settings(options: Any) -> dict[str, Setting]:
    """Return the settings of a dataclass and its nested dataclasses, by name."""
    return {name: setting for _, group in groups(options) for name, setting in group.items()}


def groups(options: Any) -> list[tuple[Any, dict[str, Setting]]]:
    """Return a dataclass or an instance, and each nested one, each with its own settings by name."""
    hints = get_type_hints(options if isinstance(options, type) else type(options), include_extras=True)
    own: dict[str, Setting] = {}
    inner: list[tuple[Any, dict[str, Setting]]] = []
    for f in fields(options):
        if is_dataclass(hints[f.name]):
            inner += groups(getattr(options, f.name, hints[f.name]))
        else:
            own[f.name] = Setting(f, hints[f.name])
    return [(options, own), *inner]


def texts(options: Any, place: int = 1) -> dict[str, str]:
    """Return the docstring below each field of a dataclass, inherited ones included; in Chinese at place 2."""
    found: dict[str, str] = {}
    for owner in filter(is_dataclass, reversed(options.__mro__)):
        body: Any = ast.parse(textwrap.dedent(inspect.getsource(cast(type, owner)))).body[0]
        for field, below in zip(body.body, body.body[place:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    found[name] = " ".join(text.split())
    return found


def overridden(record: Record, values: Mapping[str, Any]) -> Record:
    """Return a record with some fields replaced, those of nested records included."""
    changed: dict[str, Any] = {}
    for f in fields(record):  # pyright: ignore[reportArgumentType]
        inner = getattr(record, f.name)
        new = overridden(inner, values) if is_dataclass(inner) else values.get(f.name, inner)
        if new is not inner:
            changed[f.name] = new
    return replace(record, **changed) if changed else record  # pyright: ignore[reportArgumentType]


def made(options: type[Record], values: Mapping[str, Any]) -> Record:
    """Build a record from these values, those of nested records included, with defaults elsewhere."""
    hints = get_type_hints(options)
    inner = {f.name: made(hints[f.name], values) for f in fields(options) if is_dataclass(hints[f.name])}  # pyright: ignore
    return options(**inner, **{f.name: values[f.name] for f in fields(options) if f.name in values})  # pyright: ignore
