"""Commands and their flags as answers, asked of the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from byhand.book.finding import source
from byhand.book.finding.finding import Finding
from byhand.book.words.language import Words
from byhand.cli.arguments.settings import Setting, texts
from byhand.cli.main import COMMANDS

CLI = source.PACKAGE / "cli"


@dataclass
class Flag:
    """A flag: where its field stands, its help in English and, if it is written there, in Chinese; what to type."""

    code: source.Code
    help: Words
    typed: str
    commands: list[str] = field(default_factory=list)


def commands(chinese: dict[str, Any]) -> Iterator[Finding]:
    """Yield every command: its line of help and its file."""
    for name, (room, help_line) in COMMANDS.items():
        yield Finding(
            name=f"byhand {name}",
            title=Words(help_line.rstrip("."), chinese[name]["zh"]),
            kind="command",
            code=(f"cli/{room}/{name}.py", "main"),
            command=f"byhand {name}",
        )


def settings(chinese: dict[str, Any]) -> Iterator[Finding]:
    """Yield every flag of every command, under its first sentence of help."""
    for flag, found in flags().items():
        zh = chinese[flag.removeprefix("--").replace("-", "_")]["zh"]
        yield Finding(
            name=flag,
            title=Words(re.split(r"\.(?: (?=[A-Z])|$)", found.help.en)[0], zh),
            kind="setting",
            code=found.code,
            says=(found.help,) if found.help.zh else (),
            command=f"byhand {', '.join(found.commands)} {found.typed}",
        )


@cache
def flags() -> dict[str, Flag]:
    """Return all flags in the order of the commands; of a flag of several commands the first one's help."""
    found: dict[str, Flag] = {}
    for name, (room, _) in COMMANDS.items():
        for path in (CLI / room / f"{name}.py", *sorted((CLI / room).glob(f"{name}_*.py"))):
            module = import_module(f"byhand.cli.{room}.{path.stem}")
            own = [x for x in vars(module).values() if isinstance(x, type) and x.__module__ == module.__name__]
            for flag, read in (pair for x in own if x.__name__.endswith("Options") for pair in _flags(x)):
                commands = found.setdefault(flag, read).commands
                commands += [name] if name not in commands else []
    return found


def _flags(owner: Any) -> Iterator[tuple[str, Flag]]:
    """Yield the flags of a dataclass, and of the dataclasses in it."""
    hints, english, chinese = get_type_hints(owner, include_extras=True), texts(owner), texts(owner, 2)
    homes: dict[str, Any] = {name: one for one in owner.__mro__ if is_dataclass(one) for name in texts(one)}
    for own in fields(owner):
        setting = Setting(own, hints[own.name])
        if is_dataclass(hints[own.name]):
            yield from _flags(hints[own.name])
        elif own.name in english and not setting.positional:
            home = homes[own.name]
            code = source.inside(Path(sys.modules[home.__module__].__file__ or "")), f"{home.__name__}.{own.name}"
            zh = re.sub("(?<=[；。，]) ", "", chinese.get(own.name, ""))  # a line's end behind a sign of Chinese
            yield setting.flag, Flag(code, Words(english[own.name], zh), _typed(setting.flag, own))


def _typed(flag: str, own: Field[Any]) -> str:
    """Return a flag with its default, or the switch that changes the default."""
    match own.default:
        case True:
            return flag.replace("--", "--no-", 1)
        case False:
            return flag
        case int() | float() | str() as value if value != "":
            return f"{flag} {value}"
        case _:
            return f"{flag} ..."
