"""Commands and their flags as answers, read from the files of the command line.

They are parsed: this room lies below the command line and may not import it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from byhand.book.finding import source
from byhand.book.finding.finding import Finding, split
from byhand.book.words.language import Words

CLI = source.PACKAGE / "cli"


@dataclass
class Flag:
    """A flag: where its field stands, its help in English and, if it is written there, in Chinese; what to type."""

    code: source.Code
    help: Words
    commands: list[str] = field(default_factory=list)


def commands(questions: dict[str, Any]) -> Iterator[Finding]:
    """Yield every command: its line of help, what else is asked for it, and its file."""
    for name, (room, help_line) in _commands().items():
        said = questions[name]
        yield Finding(
            name=f"byhand {name}",
            title=Words(help_line.rstrip("."), said["zh"]),
            kind="command",
            code=(CLI / room / f"{name}.py", "main"),
            asked=split(said["asked"]),
            command=f"byhand {name}",
        )


def settings(questions: dict[str, Any]) -> Iterator[Finding]:
    """Yield every flag of every command, under its first sentence of help."""
    for flag, found in flags().items():
        said = questions[flag.removeprefix("--").replace("-", "_")]
        yield Finding(
            name=flag,
            title=Words(_sentence(found.help.en), said["zh"]),
            kind="setting",
            code=found.code,
            asked=split(said.get("asked", "")),
            says=(found.help,) if found.help.zh else (),
            command=f"byhand {', '.join(found.commands)} {_with_default(flag, found.code)}",
        )


@cache
def flags() -> dict[str, Flag]:
    """Return all flags in the order of the commands; of a flag of several commands the first one's help."""
    found: dict[str, Flag] = {}
    for name, (room, _) in _commands().items():
        paths = [CLI / room / f"{name}.py", *sorted((CLI / room).glob(f"{name}_*.py"))]
        owners = [(path, node) for path in paths for node in source.tree(path).body if isinstance(node, ast.ClassDef)]
        for path, owner in owners:
            for flag, code, help_of in _fields(path, owner.name) if _is_read(owner.name) else ():
                made = found.setdefault(flag, Flag(code, help_of))
                if name not in made.commands:
                    made.commands.append(name)
    return found


def _is_read(name: str) -> bool:
    return name.endswith("Options")


@cache
def _commands() -> dict[str, tuple[str, str]]:
    return ast.literal_eval(source.statement(CLI / "main.py", "COMMANDS").value)


def _class(path: Path, name: str) -> source.Code | None:
    """Return where the class stands that a file knows by this name; None for another kind of name."""
    for node in source.tree(path).body if path.is_file() else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            return path, name
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return _class(source.PACKAGE.parent / f"{(node.module or '').replace('.', '/')}.py", name)
    return None


def _fields(path: Path, owner: str) -> Iterator[tuple[str, source.Code, Words]]:
    """Yield flag, definition and help of a dataclass's fields, of those it inherits, and of the dataclasses in it."""
    node = source.statement(path, owner)
    for base in filter(None, (_class(path, ast.unparse(base)) for base in node.bases)):
        yield from _fields(*base)
    for statement, below, second in zip_longest(node.body, node.body[1:], node.body[2:]):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        kind, name = ast.unparse(statement.annotation), statement.target.id
        if inner := _class(path, kind):
            yield from _fields(*inner)
        elif text := _text(below) if not kind.startswith("Positional") else "":
            yield f"--{name.rstrip('_').replace('_', '-')}", (path, f"{owner}.{name}"), Words(text, _text(second))


def _text(node: ast.stmt | None) -> str:
    """Return a string that stands alone, as one line."""
    match node:
        case ast.Expr(ast.Constant(str(text))):
            return re.sub("(?<=[；。，]) ", "", " ".join(text.split()))  # a line's end behind a sign of Chinese
        case _:
            return ""


def _sentence(text: str) -> str:
    """Return the first sentence, without its full stop."""
    return re.split(r"\.(?: (?=[A-Z])|$)", text)[0]


def _with_default(flag: str, code: source.Code) -> str:
    """Return a flag with its default, or the switch that changes the default."""
    default = source.statement(*code).value
    if isinstance(default, ast.Call):  # field(default=...)
        default = next((k.value for k in default.keywords if k.arg == "default"), None)
    match default:
        case ast.Constant(True):
            return flag.replace("--", "--no-", 1)
        case ast.Constant(False):
            return flag
        case ast.Constant(int() | float() | str() as value) if value != "":
            return f"{flag} {value}"
        case _:
            return f"{flag} ..."
