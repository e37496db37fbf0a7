"""Errors a user can act on: one line that says what is wrong, where, and what to do.

The command line prints the message of a `ByhandError` after `error:` and exits with 2. Any other exception is a
defect of byhand; `cli/terminal/guard.py` asks for a report.
"""

import os
import re
from collections.abc import Collection
from typing import NoReturn

WINDOWS = os.name == "nt"


class ByhandError(Exception):
    """Base of every error caused by the caller's input, not by our code."""


class ShapeError(ByhandError, ValueError):
    """An array has a shape (or dtype) that the equation cannot take."""


class ConfigError(ByhandError, ValueError):
    """A setting has a value that cannot work, alone or together with another."""


class DataError(ByhandError, ValueError):
    """A text or a token cannot be used: missing, empty, too short, out of range."""


class CheckpointError(ByhandError):
    """A run folder or checkpoint cannot be read, verified, written or locked."""


class UnknownCheckpointError(CheckpointError):
    """A checkpoint that may be whole but cannot be read here, or has another version: loading must not skip it."""


class ExplainError(ByhandError, LookupError):
    """A pass has no such tensor or element, or the tensor has no gradient."""


class NoElementError(ExplainError):
    """The tensor exists, but not this element."""


class NonFiniteError(ByhandError, ArithmeticError):
    """A loss or gradient became NaN or infinite; the message names the step and the first bad array."""


UNSOUND_LOGITS = (
    "the model's logits are not finite: its weights are damaged, or too large. "
    "Use an earlier checkpoint of the run, or train again with a lower --lr."
)


def is_interrupt(error: BaseException) -> bool:
    """Return whether the error is a Ctrl-C, or an ImportError caused by one."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        if isinstance(found, KeyboardInterrupt):
            return True
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return False


def brief(error: Exception, most: int = 80) -> str:
    """Return an error's message in one line of at most `most` characters, since some quote a file."""
    said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    said = " ".join(said.split())
    return said.rstrip(".") if len(said) <= most else f"{said[: most - 1].rpartition(' ')[0] or said[: most - 1]}…"


def suggestion(name: str, known: Collection[str]) -> str:
    """Return a hint for an unknown name: the nearest known one, or else all."""
    from difflib import get_close_matches  # slow to import

    near = get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]}?" if near else f"Use one of {', '.join(known)}."


def reason(error: OSError | ValueError) -> str:
    """Return the system's reason in words; some libraries raise an OSError without `strerror`.

    A file name with a NUL raises a ValueError.
    """
    if not isinstance(error, OSError):
        return str(error)
    return error.strerror or (os.strerror(error.errno) if error.errno else str(error)) or type(error).__name__


def command(*words: object) -> str:
    """Return a command to paste, in double quotes if necessary, since cmd.exe knows no others."""
    return " ".join(map(_quoted, map(str, words)))


def install(extra: str) -> str:
    """Return the command that installs optional libraries."""
    return f'pip install "byhand[{extra}]"'


def _quoted(word: str) -> str:
    if re.fullmatch(r"[\w@%+=:,./\\-]+" if WINDOWS else r"[\w@%+=:,./-]+", word, re.ASCII):
        return word
    if WINDOWS or not set(word) & set('"$`\\!'):
        return '"{}"'.format(word.replace('"', '\\"'))
    from shlex import quote  # POSIX shells expand more in double quotes

    return quote(word)


class Former:
    """A removed name; access raises AttributeError with the replacement."""

    def __init__(self, now: str) -> None:
        self.now = now

    def __get__(self, instance: object, owner: object = None) -> NoReturn:
        raise AttributeError(f"this optimizer attribute was removed. Write {self.now}.")

    def __set__(self, instance: object, value: object) -> NoReturn:
        self.__get__(instance)
