"""Arguments to dataclasses, by tyro, with errors of one line."""

import contextlib
import io
import os
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import tyro

from byhand.cli.terminal.shown import quoted, shown
from byhand.errors import ByhandError

Options = TypeVar("Options")

MOST_ARGUMENTS = 1000
MOST_CHARACTERS = 1 << 17  # of all arguments; tyro takes a second to refuse as many
LONGEST_FLAG = 60  # characters: tyro compares an unknown one with each that there is, which takes long
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"  # what word processors make of - and --
COMPLETION = re.compile("--tyro[-_](print|write)[-_]completion")
SETTING = re.compile(r"(Use |Lower )?(?<![\w-])([a-z]\w*)")  # in words about one
SHELLS = ("bash", "zsh", "tcsh", "fish")

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
    _require_sense(arguments, prog)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    arguments = [*map(_canonical, arguments[:end]), *arguments[end:]]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                options,
                args=arguments,
                prog=prog,
                default=tyro.MISSING_NONPROP if default is None else default,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        line, ours = _one_line(said.getvalue(), arguments)
        if line.startswith("Unrecognized") and (strange := _strange_dash(arguments)):
            line = strange
        raise ByhandError(line if ours else f"{line} See {prog} --help.") from None


def _canonical(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    flag, equals, value = argument.partition("=")
    flag = flag.replace("_", "-")
    return f"{ALIASES.get(flag, flag)}{equals}{value}"


def given(arguments: Sequence[str], flag: str) -> str | None:
    """Return a flag's value as it was written, of several the last, or None."""
    value = None
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        if argument == flag:
            value = following
        elif argument.startswith(f"{flag}="):
            value = argument.partition("=")[2]
    return value


def _require_sense(arguments: Sequence[str], prog: str) -> None:
    """Raise ByhandError for what tyro would take long to refuse, or refuse with a traceback."""
    if len(arguments) > MOST_ARGUMENTS:
        raise ByhandError(f"there are {len(arguments):,} arguments, more than any command takes. See {prog} --help.")
    if (length := sum(map(len, arguments))) > MOST_CHARACTERS:
        raise ByhandError(f"the arguments have {length:,} characters. Use at most {MOST_CHARACTERS:,}, or a file.")
    for i, argument in enumerate(arguments):
        flag = argument.partition("=")[0]
        if argument == "--":
            break
        if argument.startswith("-") and len(flag) > LONGEST_FLAG and not re.match(r"-[\d.]", flag):
            raise ByhandError(f"there is no option {quoted(flag)}. See {prog} --help.")
        if COMPLETION.match(argument) and (i or arguments[1:2] not in [[shell] for shell in SHELLS]):
            raise ByhandError(f"{flag} comes first, with a shell behind it: {', '.join(SHELLS)}.")


def _strange_dash(arguments: Sequence[str]) -> str:
    """Return words for an option that begins with a dash as word processors write it, or nothing."""
    for argument in arguments:
        if found := re.match(f"[{DASHES}]+([a-z][a-z-]*)", argument):
            return f"{quoted(argument)} begins with a dash that is no hyphen. Write --{shown(found[1], 60)}."
    return ""


def _one_line(box: str, arguments: Sequence[str]) -> tuple[str, bool]:
    """Take the words out of tyro's box, without frame, rule and footer, and whether they are a config's own."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", box)
    words: list[str] = []
    for line in text.splitlines():
        line = line.strip("╭╮╰╯│─ \t")
        if line.startswith("For full helptext"):
            break
        if line and "────" not in line and not re.fullmatch("-+", line):  # drawn in ASCII where UTF-8 is not known
            words.append(line)
    said = " ".join(words[1:] if len(words) > 1 else words) or "bad arguments"
    said = said.partition(" Argument helptext:")[0]
    if own := re.match(r"Error parsing (?!--)[\w.]+: (.*)", said):
        return SETTING.sub(lambda m: _as_flag(m, arguments), own[1]), True
    if wrong := re.match(r"Error parsing (--[\w-]+): (.*)", said):
        return _wrong_value(wrong[1], wrong[2], given(arguments, wrong[1])), False
    said, _, meant = said.partition(" Perhaps you meant:")
    said = shown(said.rstrip("."), 200) + "."
    if missing := re.match(r"Missing value for argument '(--[\w-]+)'", said):
        return f"{missing[1]} needs a value (one that begins with - is written {missing[1]}=-x).", False
    flags = re.findall(r"--[a-z][\w-]*", meant)
    return (f"{said} Perhaps you meant {flags[0]}." if flags else said), False


def _as_flag(setting: re.Match[str], arguments: Sequence[str]) -> str:
    """Return a setting's name as its flag where the flag was given, or where it is advised."""
    advice, name = setting.groups("")
    flag = f"--{name.replace('_', '-')}"
    return advice + (flag if (advice and "_" in name) or given(arguments, flag) is not None else name)


def _wrong_value(flag: str, reason: str, written: str | None) -> str:
    """Say which value a flag cannot take, and what it takes instead."""
    if written is None or not re.search(r"INT|FLOAT|int\(\)|float|integer", reason):
        return f"{flag}: {shown(reason.rstrip('.'), 200)}."
    if re.search(r"INT|int\(\)|integer", reason) and re.fullmatch(r"\s*[-+]?\d+\s*", written):
        return f"{flag} {shown(written, 20)} has {len(written):,} digits. Use a smaller number."
    kind = "an integer" if re.search(r"INT|int\(\)|integer", reason) else "a number"
    return f"{flag} {shown(written, 60) or 'without a value'} is not {kind}."


def prefer_plain_output() -> bool:
    """Return True where colour and live lines are unwelcome: NO_COLOR, a dumb terminal, or a pipe."""
    import sys

    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
