"""The prompts of `byhand sample --prompts FILE`: JSON lines, checked before the first is continued."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from byhand.cli.terminal.shown import quoted
from byhand.errors import ByhandError, DataError, reason
from byhand.files.reading import parse_json, read_regular
from byhand.runtimes.sampling import Sampling

LONGEST = 1 << 24  # bytes of all prompts


@dataclass(frozen=True)
class Prompt:
    """One line: the text, and how it is continued."""

    prompt: str
    max_new_tokens: int
    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int
    stop: str
    line: int = 0

    @property
    def sampling(self) -> Sampling:
        """How its tokens are drawn."""
        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)


SETTINGS = tuple(field.name for field in fields(Prompt))[:-1]
WHOLE = ("max_new_tokens", "top_k", "seed")


def prompts_of(path: str, usual: Any) -> list[Prompt]:
    """Return the prompts of a file, or of standard input for -; what a line does not set is as in `usual`.

    Raises DataError, with the line's number.
    """
    name = "standard input" if path == "-" else path
    found = []
    for number, line in enumerate(_content(path).split(b"\n"), 1):
        if line.strip():
            try:
                found.append(_prompt(line, usual, number))
            except (ByhandError, ValueError) as error:  # bytes that are not UTF-8 are a ValueError too
                raise DataError(f"line {number} of {quoted(name)}: {_sentence(error)}") from None
    if not found:
        raise DataError(f'{quoted(name)} holds no prompt. Write lines such as {{"prompt": "To be"}}.')
    return found


def _content(path: str) -> bytes:
    if path != "-":
        try:
            return read_regular(Path(path), LONGEST)
        except OSError as error:
            raise DataError(f"cannot read --prompts {quoted(path)}: {reason(error)}. Check the path.") from None
    content = sys.stdin.buffer.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise DataError(f"the prompts on standard input have more than {LONGEST:,} bytes. Use fewer.")
    return content


def _sentence(error: Exception) -> str:
    if isinstance(error, ByhandError):
        return str(error)
    return f'it is no JSON ({str(error)[:80]}). Write an object such as {{"prompt": "To be"}}.'


def _prompt(line: bytes, usual: Any, number: int) -> Prompt:
    value = parse_json(line, depth=2)
    if not isinstance(value, dict) or not isinstance(value.get("prompt"), str):
        raise DataError('it must be an object with the text to continue, such as {"prompt": "To be"}.')
    if unknown := [name for name in value if name not in SETTINGS]:
        raise DataError(f"{quoted(unknown[0])} is no setting. Use {', '.join(SETTINGS)}.")
    for name, given in value.items():
        _check(name, given)
    prompt = Prompt(**{name: getattr(usual, name) for name in SETTINGS} | value, line=number)
    prompt.prompt.encode()  # half a surrogate pair is a ValueError
    prompt.sampling  # noqa: B018 - it checks its settings
    return prompt


def _check(name: str, given: Any) -> None:
    """Raise DataError unless a setting has its type and size."""
    if name in ("prompt", "stop"):
        kind, fits = "a string", isinstance(given, str)
    elif name in WHOLE:
        kind = "an integer from 0 to 2^63"
        fits = isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 1 << 63
    else:
        kind = "a number that is not too large"
        fits = isinstance(given, (int, float)) and not isinstance(given, bool) and given <= sys.float_info.max
    if not fits and not (given is None and name in ("top_k", "top_p")):
        raise DataError(f"{name} must be {kind}.")
