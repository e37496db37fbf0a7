"""Arguments to dataclasses, by tyro, with errors of one line."""

import contextlib
import io
import os
import re
from typing import Any, TypeVar

import tyro

from byhand.errors import ByhandError

Options = TypeVar("Options")

ALIASES = {
    "--n-embd": "--d-model",
    "--block-size": "--seq-len",
    "--n-layer": "--n-layers",
    "--n-head": "--n-heads",
    "--max-iters": "--steps",
    "--learning-rate": "--lr",
}


def parse(options: type[Options], arguments: list[str], prog: str, default: Any = None) -> Options:
    """Return `options` filled from the arguments; bad ones raise ByhandError, --help prints and exits with 0.

    Flags are flat (`--d-model`, not `--model.d-model`), booleans come in pairs (`--causal`, `--no-causal`), and the
    names that people know from elsewhere are accepted (`ALIASES`).
    """
    arguments = [_canonical(a) for a in arguments]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                options,
                args=arguments,
                prog=prog,
                default=tyro.MISSING_NONPROP if default is None else default,
                config=(tyro.conf.OmitArgPrefixes,),
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        line, ours = _one_line(said.getvalue())
        raise ByhandError(line if ours else f"{line} See {prog} --help.") from None


def _canonical(argument: str) -> str:
    flag, equals, value = argument.partition("=")
    return f"{ALIASES.get(flag, flag)}{equals}{value}"


def _one_line(box: str) -> tuple[str, bool]:
    """Take the words out of tyro's box, without frame, rule and footer, and whether they are a config's own."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", box)
    words: list[str] = []
    for line in text.splitlines():
        line = line.strip("╭╮╰╯│─ \t")
        if line.startswith("For full helptext"):
            break
        if line and "────" not in line:
            words.append(line)
    said = " ".join(words[1:] if len(words) > 1 else words) or "bad arguments"
    said = said.partition(" Argument helptext:")[0]
    if own := re.match(r"Error parsing (?!--)[\w.]+: (.*)", said):
        return own[1], True
    if wrong := re.match(r"Error parsing (--[\w-]+): (.*)", said):
        return _wrong_value(wrong[1], wrong[2]), False
    said, _, meant = said.partition(" Perhaps you meant:")
    said = said.rstrip(".") + "."
    if missing := re.match(r"Missing value for argument '(--[\w-]+)'", said):
        return f"{missing[1]} needs a value (one that begins with - is written {missing[1]}=-x).", False
    flags = re.findall(r"--[a-z][\w-]*", meant)
    return (f"{said} Perhaps you meant {flags[0]}." if flags else said), False


def _wrong_value(flag: str, reason: str) -> str:
    """Say which value a flag cannot take, and what it takes instead."""
    given = re.findall(r"'([^']*)'", reason)
    kind = next((k for k in ("INT", "FLOAT") if k in reason), "INT" if "int()" in reason else "FLOAT")
    if not given:
        return f"{flag}: {reason.rstrip('.')}."
    value = next((g for g in given if g not in ("NoneType", "int", "float")), given[0])
    return f"{flag} {value} is not {'an integer' if kind == 'INT' else 'a number'}."


def prefer_plain_output() -> bool:
    """Return True where colour and live lines are unwelcome: NO_COLOR, a dumb terminal, or a pipe."""
    import sys

    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
