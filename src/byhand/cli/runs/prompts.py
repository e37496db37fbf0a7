"""The prompts of `byhand sample --prompts FILE`: JSON lines, checked before the first is continued."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from byhand.cli.arguments.drawing import Drawing, TokenBias
from byhand.cli.arguments.parsing import text_bytes
from byhand.cli.arguments.settings import Repeated, Setting, overridden, settings
from byhand.cli.terminal.shown import quoted
from byhand.config_checks import at_least, at_most, brief, check_types
from byhand.errors import ByhandError, ConfigError, DataError, reason
from byhand.files.reading import parse_json, read_regular

LONGEST = 1 << 24  # bytes of a prompt, or of a file of prompts; the model reads at most its context
LONGEST_STOP = 1000


@dataclass(frozen=True)
class Prompt:
    """A text, and the settings of its continuations."""

    prompt: Repeated[str] = ()
    """Text to continue; - reads it from standard input, without one final newline. Repeat it for several texts."""
    max_new_tokens: int = 300
    """How many tokens to draw: bytes, unless the run has another tokenizer."""
    stop: Repeated[str] = ()
    """End the text before this one, or at this special token of the run's tokenizer. Repeat it for several."""
    samples: int = 1
    """Number of continuations, with consecutive seeds from --seed."""
    drawing: Drawing = field(default_factory=Drawing)

    def __post_init__(self) -> None:
        check_types(self)
        at_least(self, 0, "max_new_tokens")
        at_least(self, 1, "samples")
        at_most(self)
        if self.samples > 1 and self.drawing.greedy:
            raise ConfigError(f"samples is {self.samples}, but at temperature 0 all are the same text. Leave it out.")
        replace(self.drawing, seed=self.drawing.seed + self.samples - 1)  # it checks the last seed
        for stop in self.stop:
            if not 0 < len(text_bytes(stop, "stop")) <= LONGEST_STOP:
                raise ConfigError(f"stop is {brief(stop)}, but must have 1 to {LONGEST_STOP:,} bytes.")


def prompts_given(usual: Prompt) -> dict[str, Prompt]:
    """Return the prompts of a command line, each keyed by its place as messages give it."""
    if usual.prompt.count("-") > 1:
        raise ConfigError("--prompt - is given twice, but standard input can be read once. Leave one out.")
    texts = usual.prompt or ("",)
    return {
        f"prompt {number}" if len(texts) > 1 else "prompt": replace(usual, prompt=(text,))
        for number, text in enumerate(texts, 1)
    }


def content(prompt: Prompt) -> bytes:
    """Return the text of a command line's prompt."""
    (text,) = prompt.prompt
    if text != "-":
        return text_bytes(text, "--prompt")
    read = sys.stdin.buffer.read(LONGEST + 1)
    if len(read) > LONGEST:
        raise DataError(f"the prompt on standard input has more than {LONGEST:,} bytes. Use its end.")
    return read[:-2] if read.endswith(b"\r\n") else read.removesuffix(b"\n")  # what `echo` adds


def prompts_of(path: str, usual: Prompt) -> dict[str, Prompt]:
    """Return the prompts of a file, or of standard input for -, each keyed by its place as messages give it.

    usual  sets what a line does not
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
    return f'it is not valid JSON ({str(error)[:80]}). Write an object such as {{"prompt": "To be"}}.'


def _prompt(line: bytes, usual: Prompt) -> Prompt:
    value = parse_json(line, depth=2)
    if not isinstance(value, dict) or not isinstance(value.get("prompt"), str):
        raise DataError('it must be an object with the text to continue, such as {"prompt": "To be"}.')
    known = settings(Prompt)
    if unknown := [name for name in value if name not in known]:
        raise DataError(f"{quoted(unknown[0])} is not a setting. Use {', '.join(known)}.")
    return overridden(usual, {name: _value(known[name], of_line) for name, of_line in value.items()})


def _value(setting: Setting, value: Any) -> Any:
    if setting.kind is TokenBias:
        return TokenBias.each(value)
    return _texts(setting.name, value) if setting.repeated else value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """Return the texts of a setting that may be repeated: a string, or a list of them."""
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise DataError(f"{name} is {brief(value)}, but must be text in quotes, or a list of such texts.")
        text.encode()  # half a surrogate pair is a ValueError
    return tuple(texts)
