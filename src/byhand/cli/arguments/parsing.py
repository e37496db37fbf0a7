"""Parses a command's arguments once: the values given, and one-line errors.

A dataclass declares the flags; argparse parses them and prints --help. Two things are resolved before argparse:
aliases of flags, and words that begin with a hyphen but are numbers or formulas.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import SUPPRESS, ArgumentError, ArgumentParser
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from typing import Any, Generic, NoReturn, TypeVar

from byhand.cli.arguments.settings import MARK, Setting, flag, groups, made, overridden, settings, texts
from byhand.cli.terminal.say import show, show_names
from byhand.cli.terminal.shown import quoted, shown
from byhand.errors import ByhandError, ConfigError, DataError, command

Options = TypeVar("Options")
Subcommands = Mapping[str, tuple[type[Any], Callable[[Any], int]]]  # name: (class of options, function)

MOST_ARGUMENTS = 1000
MOST_CHARACTERS = 1 << 17  # of all arguments
LONGEST_FLAG = 60  # characters of an unknown flag to compare with the known ones
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"  # word processors replace - and -- by these
OPTION = re.compile(r"-h|--[A-Za-z][\w-]*(=.*)?", re.DOTALL)
SETTING = re.compile(r"(Use |Lower )?(?<![\w-])(?<!Leave it )([a-z]\w*)")  # in an error message
FLAGS = re.compile(r"^  (-\S+(?:, -\S+)*)", re.MULTILINE)  # in a page of --help

ALIASES = {
    "--n-embd": "--d-model",
    "--block-size": "--seq-len",
    "--n-layer": "--n-layers",
    "--n-head": "--n-heads",
    "--max-iters": "--steps",
    "--learning-rate": "--lr",
    "--outtype": "--dtype",  # of llama.cpp's converter
    "--quantize": "--dtype",  # its former name here
    "--temp": "--temperature",  # as in llama.cpp, and the next two
    "--repeat-penalty": "--repetition-penalty",
    "--n-predict": "--max-new-tokens",
    "--max-tokens": "--max-new-tokens",
}
ON_A_GPU = ("--runtime xla (it takes the GPU that JAX sees)",)
ELSEWHERE = {  # other programs' flags whose job one of ours does differently
    **dict.fromkeys(("--device", "--gpu", "--gpus", "--cuda"), ON_A_GPU),
    **dict.fromkeys(("--epochs", "--num-epochs", "--num-train-epochs"), ("--minutes M, or --steps N",)),
    **dict.fromkeys(("--fp16", "--bf16"), ("--dtype bfloat16",)),
}


@dataclass(frozen=True)
class Given(Generic[Options]):
    """The settings given as a command's arguments, by name."""

    options: type[Options]
    prog: str
    values: dict[str, Any]
    help_asked: bool

    def over(self, default: Options | None = None) -> Options:
        """Return the options: given values over those of `default`, or over the class's own defaults.

        If --help is among the arguments, print it with these defaults and exit with 0.
        """
        if self.help_asked:
            _print_help(self.options if default is None else default, self.prog)
        if default is None:
            required = [s for s in settings(self.options).values() if s.required and s.name not in self.values]
            if required:
                missing = ", ".join(setting.written for setting in required)
                raise ByhandError(f"{self.prog} needs {missing}. See {self.prog} --help.")
        try:
            return made(self.options, self.values) if default is None else overridden(default, self.values)
        except ConfigError as error:
            raise ConfigError(SETTING.sub(self._as_flag, str(error))) from None

    def refuse(self, names: Collection[str], because: str) -> None:
        """Raise ConfigError if one of these settings is given, though it changes nothing."""
        for name in self.values:
            if name in names:
                raise ConfigError(f"{self.written(name)} changes nothing {because}. Leave it out.")

    def written(self, name: str) -> str:
        """Return a given setting as its flag was written: a switch that was turned off as `--no-...`."""
        return flag(f"no_{name}" if self.values[name] is False else name)

    def _as_flag(self, setting: re.Match[str]) -> str:
        """Return a setting's name as its flag if the flag was given or the message advises using it."""
        advice, name = setting.groups("")
        return advice + (flag(name) if (advice and "_" in name) or name in self.values else name)


def parse(options: type[Options], arguments: list[str], prog: str) -> Options:
    """Return `options` filled from the arguments; bad ones raise ByhandError, --help prints and exits with 0."""
    return read(options, arguments, prog).over()


def run_subcommand(known: Subcommands, arguments: list[str], prog: str) -> int:
    """Run the subcommand that the first argument names, with its options, and return its exit code."""
    if not arguments:
        raise ConfigError(f"{prog} needs one of {', '.join(known)}. See {prog} --help.")
    name, *rest = arguments
    if name in ("-h", "--help"):
        show(f"usage: {prog} COMMAND [options]\n")
        show_names({each: f"{options.__doc__}".splitlines()[0] for each, (options, _) in known.items()})
        show(f"\n`{prog} COMMAND --help` lists its options.")
        return 0
    if name not in known:
        raise ConfigError(f"there is no {prog} {quoted(name)}. Use one of {', '.join(known)}.")
    options, run = known[name]
    return run(parse(options, rest, f"{prog} {name}"))


def read(options: type[Options], arguments: list[str], prog: str) -> Given[Options]:
    """Return the settings given; raise a one-line ByhandError for an unknown flag or a bad value.

    Flags are flat (`--d-model`, not `--model.d-model`), booleans come in pairs (`--causal`, `--no-causal`), and
    other programs' names are accepted (`ALIASES`).
    """
    if len(arguments) <= MOST_ARGUMENTS and (length := sum(map(len, arguments))) > MOST_CHARACTERS:
        raise ByhandError(f"the arguments have {length:,} characters. Use at most {MOST_CHARACTERS:,}, or a file.")
    values = dict[str, Any]()
    help_asked = bool({"-h", "--help"} & set(arguments[: _end(arguments)]))
    with suppress(*(ByhandError,) * help_asked):
        try:
            values = _values(options, [a for a in arguments if not help_asked or a not in ("-h", "--help")])
        except ByhandError as error:
            raise ByhandError(f"{error} See {prog} --help.") from None
    return Given(options, prog, values, help_asked)


def text_bytes(text: str, flag: str) -> bytes:
    """Return an argument's bytes, even if they are not UTF-8."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair, which Windows allows
        raise DataError(f"{flag} is not valid Unicode: it holds half a character. Write it whole.") from None


def _values(options: type[Any], arguments: list[str]) -> dict[str, Any]:
    """Return the values of the settings that the arguments give."""
    if len(arguments) > MOST_ARGUMENTS:
        raise ByhandError(
            f"there are {len(arguments):,} arguments, more than any command takes. For many files name "
            'their folder, or quote a pattern: "books/*.txt".'
        )
    known = settings(options)
    flags = {setting.flag: setting for setting in known.values() if not setting.positional}
    try:
        found, words = _parser(options).parse_known_args(_marked(known, arguments))
    except ArgumentError as error:
        name = str(error.argument_name).partition("/")[0]
        if flags[name].kind is bool:
            negated = name.replace("--", "--no-", 1)
            typed = negated if any(word.startswith(f"{negated}=") for word in arguments) else name
            raise ByhandError(f"{typed} takes no value.") from None
        raise ByhandError(f"{name} needs a value (one that begins with - is written {name}=-x).") from None
    values = vars(found)
    stray = next((i for i, word in enumerate(words) if not word.startswith(MARK)), len(words))
    words, unknown = words[:stray], words[stray:]
    for setting in known.values():
        if setting.positional and words:
            count = len(words) if setting.many else 1
            some, words = tuple(map(setting.value, words[:count])), words[count:]
            values[setting.name] = some if setting.many else some[0]
    if words or unknown:
        _refuse([word.removeprefix(MARK) for word in words + unknown], flags)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _marked(known: dict[str, Setting], arguments: list[str]) -> list[str]:
    """Normalise the arguments for argparse: canonical flags, and a mark before every other word."""
    any_words = any(s.positional and s.many for s in known.values())  # then -x is one of them, as in a formula
    flags = {s.flag: s for s in known.values() if not s.positional}
    end = _end(arguments)
    before, marked = arguments[:end], list[str]()
    for word, after in zip_longest(before, before[1:], fillvalue=""):
        typed, equals, value = word.partition("=")
        name = typed.replace("_", "-")
        name = name if name in flags else ALIASES.get(name, name)
        optional = flags[name].optional if name in flags else None
        if not (OPTION.fullmatch(word) if any_words else word[:1] == "-" != word and not _is_number(word)):
            marked.append(MARK + word)
        elif optional and not equals and not after.endswith(optional.endings):
            marked.append(f"{name}=")
        else:
            marked.append(f"{name}{equals}{value}")
    return marked + [MARK + word for word in arguments[end + 1 :]]


def _end(arguments: list[str]) -> int:
    """Return the index at which flags end: that of `--`, else the number of arguments."""
    return arguments.index("--") if "--" in arguments else len(arguments)


def _is_number(word: str) -> bool:
    with suppress(ValueError):
        return isinstance(float(word), float)
    return False


def _refuse(unknown: list[str], flags: Collection[str]) -> NoReturn:
    """Raise ByhandError for unrecognised arguments."""
    options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
    if long := next((option for option in options if len(option) > LONGEST_FLAG), ""):
        raise ByhandError(f"there is no option {quoted(long)}.")
    for word in unknown:
        if found := re.match(f"[{DASHES}]+([a-z][a-z-]*)", word):
            raise ByhandError(f"{quoted(word)} begins with a typographic dash. Write --{shown(found[1], 60)}.")
    if not options:
        text = "--data" in flags and os.path.exists(unknown[0])  # other programs take it so
        flag_of_it = "--data" if text else "--prompt" if "--prompt" in flags else ""
        use = f" Use {flag_of_it} {shown(command(unknown[0]))}." if flag_of_it else ""
        raise ByhandError(f"unexpected argument {quoted(unknown[0])}.{use}")
    name = options[0].lower().replace("_", "-")
    here = next((f" Use {use}." for use in ELSEWHERE.get(name, ()) if use.split()[0] in flags), "")
    near = get_close_matches(name, flags, n=1, cutoff=0.8)
    hint = here or (f" Perhaps you meant {near[0]}." if near else "")
    raise ByhandError(f"there is no option {quoted(options[0])}.{hint}")


def _parser(options: Any, prog: str = "", page: bool = False) -> ArgumentParser:
    """Return the parser of a command's flags; with `page`, one that prints --help with a record's values."""
    found = groups(options)
    words = [setting.metavar for _, group in found for setting in group.values() if setting.positional]
    usage, about = " ".join([prog, "[options]", *words]), (options.__doc__ or "").replace("%", "%%")
    parser = ArgumentParser(None, usage, about, add_help=False, allow_abbrev=False, argument_default=SUPPRESS)
    parser.exit_on_error = False
    for owner, group in found:
        help_of = texts(owner if isinstance(owner, type) else type(owner)) if page else {}
        part = parser.add_argument_group("options" if owner is options else re.split("[.:]", f"{owner.__doc__}")[0])
        for name, setting in group.items():
            text = setting.with_default(help_of.get(name, ""), getattr(owner, name, None)).replace("%", "%%")
            if setting.positional and page:
                parser.add_argument(name, metavar=setting.metavar, help=text)
            elif not setting.positional:
                part.add_argument(setting.flag, **setting.argument(), help=text)
    return parser


def _print_help(options: Any, prog: str) -> NoReturn:
    """Print --help and exit with 0."""
    parser = _parser(options, prog, page=True)
    parser.__dict__["color"] = False  # Python 3.14 has colours of its own
    page = parser.format_help()
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    sys.stdout.write(FLAGS.sub("  \x1b[1m\\1\x1b[0m", page) if coloured else page)
    raise SystemExit(0)
