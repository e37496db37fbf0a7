"""Settings by name, as a command's flags would give them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from re import Match
from textwrap import fill
from typing import Any, TypeVar

from byhand.cli.arguments.drawing import TokenBias
from byhand.cli.arguments.parsing import ALIASES, ELSEWHERE, Given, Options
from byhand.cli.arguments.settings import Setting, flag, groups, settings, texts
from byhand.cli.terminal.shown import quoted
from byhand.config_checks import KINDS, brief
from byhand.errors import ConfigError, suggestion

Function = TypeVar("Function", bound=Callable[..., Any])
NOT_GIVEN = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)


class Named(Given[Options]):
    """Settings that a caller gives by name, as messages call them too."""

    def _as_flag(self, setting: Match[str]) -> str:
        return setting[0]


def named(
    options: type[Options], function: str, values: Mapping[str, Any], but: Collection[str] = ()
) -> Given[Options]:
    """Return the settings that `values` gives; None means not given.

    but  settings that only a command line has

    Raises ConfigError for an unknown name.
    """
    known = {name: setting for name, setting in settings(options).items() if name not in but}
    for name in values:
        if name not in known:
            raise ConfigError(f"{function} has no setting {quoted(name)}. {_instead(name, known)}")
    given = {name: value for name, value in values.items() if value is not None}
    for name, value in given.items():
        if known[name].kind is TokenBias:
            given[name] = TokenBias.each(value)
        elif known[name].repeated and isinstance(value, str):
            given[name] = (value,)
        elif known[name].kind is Path and isinstance(value, str | os.PathLike):
            given[name] = known[name].value(os.fspath(value))
        elif known[name].many and not isinstance(value, str):
            several = value if isinstance(value, Iterable) and not isinstance(value, bytes) else [value]
            given[name] = tuple(os.fspath(one) if isinstance(one, os.PathLike) else one for one in several)
        else:
            _require_kind(known[name], value)
    return Named(options, function, given, False)


def _instead(name: str, known: Collection[str]) -> str:
    """Return a hint for an unknown setting: ours for another program's, else the nearest name."""
    ours = ALIASES.get(flag(name), "").removeprefix("--").replace("-", "_")
    if ours in known:
        return f"Use {ours}."
    elsewhere = (use.replace("--", "") for use in ELSEWHERE.get(flag(name), ()))
    return next((f"Use {use}." for use in elsewhere if use.split()[0] in known), "") or suggestion(name, known)


def _require_kind(setting: Setting, value: Any) -> None:
    """Raise ConfigError for a value of a type that the command line would not produce."""
    kind = setting.kind
    if isinstance(kind, tuple):
        if value not in kind:
            raise ConfigError(f"{setting.name} is {brief(value)}. Use one of {', '.join(map(str, kind))}.")
    elif not isinstance(value, (float, int) if kind is float else kind) or (
        kind is not bool and isinstance(value, bool)
    ):
        raise ConfigError(f"{setting.name} is {brief(value)}, but must be {KINDS.get(kind, 'a path')}.")


def documented(record: Any, but: Collection[str] = ()) -> Callable[[Function], Function]:
    """Return a decorator that adds the settings a function passes on to its signature and docstring.

    record  has the settings, with their defaults
    but     the settings that it does not take
    """

    def decorate(function: Function) -> Function:
        own = [p for p in signature(function).parameters.values() if p.kind not in NOT_GIVEN]
        passed, lines = list[Parameter](), list[str]()
        for owner, group in groups(record):
            help_of = texts(owner if isinstance(owner, type) else type(owner))
            for name, setting in group.items():
                if name not in but and name not in {p.name for p in own}:
                    default = getattr(owner, name, None)
                    passed.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default))
                    text = setting.with_default(help_of.get(name, ""), default)
                    lines.append(fill(text, 100, initial_indent=f"{name:<18}", subsequent_indent=" " * 18))
        function.__signature__ = signature(function).replace(parameters=[*own, *passed])  # pyright: ignore
        function.__doc__ = "\n".join([cleandoc(function.__doc__ or ""), "", "Settings", "", *lines])
        return function

    return decorate
