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
        raise ByhandError(f"{_one_line(said.getvalue())} See {prog} --help.") from None


def _canonical(argument: str) -> str:
    flag, equals, value = argument.partition("=")
    return f"{ALIASES.get(flag, flag)}{equals}{value}"


def _one_line(box: str) -> str:
    """Take the words out of tyro's box: no frame, no rule, no footer."""
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
    said = re.sub(r"^Error parsing (model|data|optim): ", "", said)
    said, _, meant = said.partition(" Perhaps you meant:")
    said = said.rstrip(".") + "."
    flags = re.findall(r"--[a-z][\w-]*", meant)
    return f"{said} Perhaps you meant {flags[0]}." if flags else said


def prefer_plain_output() -> bool:
    """Return True where colour and live lines are unwelcome: NO_COLOR, a dumb terminal, or a pipe."""
    import sys

    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
