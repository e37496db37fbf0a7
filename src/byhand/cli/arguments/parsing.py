"""A command's arguments, read once: the values, which of them were given, and errors of one line.

tyro writes the pages of --help and the shells' completions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, NoReturn, TypeVar

import tyro

from byhand.cli.arguments.settings import Setting, flag, overridden, settings
from byhand.cli.terminal.shown import quoted, shown
from byhand.errors import ByhandError, ConfigError, DataError

Options = TypeVar("Options")
Written = dict[str, tuple[str, list[str]]]  # by a setting's name: its flag as it was written, and the words after it
Subcommands = Mapping[str, tuple[type[Any], Callable[[Any], int]]]  # by name: the options, and a function of them

MOST_ARGUMENTS = 1000
MOST_CHARACTERS = 1 << 17  # of all arguments
LONGEST_FLAG = 60  # characters of an unknown one that are compared with the known ones
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"  # word processors replace - and -- by these
OPTION = re.compile(r"-h|--[A-Za-z][\w-]*(=.*)?", re.DOTALL)
COMPLETION = re.compile("--tyro[-_](print|write)[-_]completion")
SETTING = re.compile(r"(Use |Lower )?(?<![\w-])([a-z]\w*)")  # in an error message
SHELLS = ("bash", "zsh", "tcsh", "fish")

ALIASES = {
    "--n-embd": "--d-model",
    "--block-size": "--seq-len",
    "--n-layer": "--n-layers",
    "--n-head": "--n-heads",
    "--max-iters": "--steps",
    "--learning-rate": "--lr",
}


@dataclass(frozen=True)
class Given(Generic[Options]):
    """The settings that a command's arguments give, by name: their values, and how they were written."""

    options: type[Options]
    prog: str
    values: dict[str, Any]
    written: Written
    help_asked: bool

    def over(self, default: Options | None = None) -> Options:
        """Return the options: given values over those of `default`, or over the class's own defaults.

        If --help is among the arguments, print it with these defaults and exit with 0.
        """
        if self.help_asked:
            _tyro(self.options, ["--help"], self.prog, default)
        if default is None:
            required = [s for s in settings(self.options).values() if s.required and s.name not in self.values]
            if required:
                missing = " ".join(setting.described() for setting in required)
                raise ByhandError(f"Missing from {self.prog}: {missing}. See {self.prog} --help.")
        try:
            return self.options(**self.values) if default is None else overridden(default, self.values)
        except ConfigError as error:
            raise ConfigError(SETTING.sub(self._as_flag, str(error))) from None

    def _as_flag(self, setting: re.Match[str]) -> str:
        """Return a setting's name as its flag if the flag was given, or if the words advise to use it."""
        advice, name = setting.groups("")
        return advice + (flag(name) if (advice and "_" in name) or name in self.values else name)


def parse(options: type[Options], arguments: list[str], prog: str) -> Options:
    """Return `options` filled from the arguments; bad ones raise ByhandError, --help prints and exits with 0."""
    return read(options, arguments, prog).over()


def run_subcommand(known: Subcommands, arguments: list[str], prog: str) -> int:
    """Run the subcommand that the first argument names, with its options, and return its exit code."""
    name, *rest = arguments
    if name not in known:
        raise ConfigError(f"there is no {prog} {quoted(name)}. Use one of {', '.join(known)}.")
    options, run = known[name]
    return run(parse(options, rest, f"{prog} {name}"))


def read(options: type[Options], arguments: list[str], prog: str) -> Given[Options]:
    """Return the settings that the arguments give; ByhandError in one line for an unknown flag or a bad value.

    Flags are flat (`--d-model`, not `--model.d-model`), booleans come in pairs (`--causal`, `--no-causal`), and
    other programs' names are accepted (`ALIASES`).
    """
    if len(arguments) <= MOST_ARGUMENTS and (length := sum(map(len, arguments))) > MOST_CHARACTERS:
        raise ByhandError(f"the arguments have {length:,} characters. Use at most {MOST_CHARACTERS:,}, or a file.")
    if any(map(COMPLETION.match, arguments)):
        if not COMPLETION.match(arguments[0]) or arguments[1:2] not in [[shell] for shell in SHELLS]:
            name = next(filter(COMPLETION.match, arguments)).partition("=")[0]
            raise ByhandError(f"{name} comes first, with a shell behind it: {', '.join(SHELLS)}.")
        _tyro(options, arguments, prog)
    known = settings(options)
    values: dict[str, Any] = {}
    try:
        if len(arguments) > MOST_ARGUMENTS:
            raise ByhandError(f"there are {len(arguments):,} arguments, more than any command takes.")
        written, unknown, help_asked = _sorted(known, arguments)
        if unknown and not help_asked:
            _refuse(unknown, [setting.flag for setting in known.values() if not setting.positional])
        ignored = (ByhandError,) if help_asked else ()
        for name, (_, words) in written.items():
            with suppress(*ignored):
                values[name] = known[name].value(words)
    except ByhandError as error:
        raise ByhandError(f"{error} See {prog} --help.") from None
    return Given(options, prog, values, written, help_asked)


def text_bytes(text: str, flag: str) -> bytes:
    """Return an argument's bytes, also those that are not UTF-8."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair, which Windows allows
        raise DataError(f"{flag} holds half a character. Write it out in full.") from None


def _sorted(known: dict[str, Setting], arguments: list[str]) -> tuple[Written, list[str], bool]:
    """Return the words of each setting, the words that belong to none, and whether --help is there."""
    any_words = any(s.positional and s.many for s in known.values())  # then -x is one of them, as in a formula

    def is_option(word: str) -> bool:
        return bool(OPTION.fullmatch(word)) if any_words else word[:1] == "-" != word and not _is_number(word)

    flags = {s.flag: s for s in known.values() if not s.positional}
    flags |= {f"--no{name[1:]}": s for name, s in flags.items() if s.negatable}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    rest, words, unknown = arguments[:end][::-1], list[str](), list[str]()
    written: Written = {}
    help_asked = False
    while rest:
        word = rest.pop()
        typed, equals, value = word.partition("=")
        name = typed.replace("_", "-")
        setting = flags.get(name := ALIASES.get(name, name))
        following: list[str] = [value] if equals else []
        if not is_option(word):
            words.append(word)
        elif word in ("-h", "--help"):
            help_asked = True
        elif setting is None or (setting.kind is bool and equals):
            unknown.append(word)
            while rest and not is_option(rest[-1]):
                unknown.append(rest.pop())
        elif setting.kind is bool:
            written[setting.name] = typed, [str(name == setting.flag)]
        else:
            while rest and (setting.many or not following) and not is_option(rest[-1]) and setting.takes(rest[-1]):
                following.append(rest.pop())
            if not (following or setting.many or setting.optional):
                raise ByhandError(f"{name} needs a value (one that begins with - is written {name}=-x).")
            written[setting.name] = typed, following
    words += arguments[end + 1 :]
    for setting in known.values():
        if setting.positional and words:
            count = len(words) if setting.many else 1
            written[setting.name], words = (setting.name, words[:count]), words[count:]
    return written, words + unknown, help_asked


def _is_number(word: str) -> bool:
    with suppress(ValueError):
        return isinstance(float(word), float)
    return False


def _refuse(unknown: list[str], flags: list[str]) -> NoReturn:
    """Raise ByhandError for words that belong to no setting."""
    options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
    if long := next((option for option in options if len(option) > LONGEST_FLAG), ""):
        raise ByhandError(f"there is no option {quoted(long)}.")
    for word in unknown:
        if found := re.match(f"[{DASHES}]+([a-z][a-z-]*)", word):
            raise ByhandError(f"{quoted(word)} begins with a dash that is no hyphen. Write --{shown(found[1], 60)}.")
    said = shown(f"Unrecognized options: {', '.join(unknown)}".rstrip("."), 200)
    near = get_close_matches(options[0].lower(), flags, n=1, cutoff=0.8) if options else []
    raise ByhandError(f"{said}.{f' Perhaps you meant {near[0]}.' if near else ''}")


def _tyro(options: type[Any], arguments: list[str], prog: str, default: Any = None) -> NoReturn:
    """Print a page of --help, or completions for a shell, and exit with 0."""
    if os.environ.get("NO_COLOR"):
        os.environ["TERM"] = "dumb"  # which tyro obeys
    tyro.cli(
        options,
        args=arguments,
        prog=prog,
        default=tyro.MISSING_NONPROP if default is None else default,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
    )
    raise SystemExit(0)
