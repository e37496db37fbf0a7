"""The prompts of `byhand sample --prompts FILE`: JSON lines, checked before the first is continued."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from byhand.cli.arguments.drawing import Drawing
from byhand.cli.arguments.settings import overridden, settings
from byhand.cli.terminal.shown import quoted
from byhand.config_checks import at_least, at_most, check_types
from byhand.errors import ByhandError, DataError, reason
from byhand.files.reading import parse_json, read_regular

LONGEST = 1 << 24  # bytes of all prompts


@dataclass(frozen=True)
class Prompt:
    """A text, and how it is continued."""

    prompt: str = ""
    """Text to continue; - reads it from standard input."""
    max_new_tokens: int = 300
    """How many tokens to write: bytes, unless the run has another tokenizer."""
    stop: str = ""
    """End the text at this special token of the run's tokenizer, such as <|endoftext|>."""
    drawing: Drawing = field(default_factory=Drawing)

    def __post_init__(self) -> None:
        check_types(self)
        at_least(self, 0, "max_new_tokens")
        at_most(self)


def prompts_of(path: str, usual: Prompt) -> dict[str, Prompt]:
    """Return the prompts of a file, or of standard input for -, by the place of each for errors.

    usual  has what a line does not set
    Raises DataError, with the line's number.
    """
    name = quoted("standard input" if path == "-" else path)
    found = dict[str, Prompt]()
    for number, line in enumerate(_content(path).split(b"\n"), 1):
        if line.strip():
            place = f"line {number} of {name}"
            try:
                found[place] = _prompt(line, usual)
            except (ByhandError, ValueError) as error:  # bytes that are not UTF-8 are a ValueError too
                raise DataError(f"{place}: {_sentence(error)}") from None
    if not found:
        raise DataError(f'{name} holds no prompt. Write lines such as {{"prompt": "To be"}}.')
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


def _prompt(line: bytes, usual: Prompt) -> Prompt:
    value = parse_json(line, depth=2)
    if not isinstance(value, dict) or not isinstance(value.get("prompt"), str):
        raise DataError('it must be an object with the text to continue, such as {"prompt": "To be"}.')
    known = settings(Prompt)
    if unknown := [name for name in value if name not in known]:
        raise DataError(f"{quoted(unknown[0])} is no setting. Use {', '.join(known)}.")
    value["prompt"].encode()  # half a surrogate pair is a ValueError
    return overridden(usual, value)
