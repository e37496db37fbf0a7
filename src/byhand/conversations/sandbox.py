"""A chat template rendered as transformers renders it, by Jinja in a sandbox: whoever wrote it is not trusted.

Bounded are the lines of the compiled template that may run (`STEPS`, so that it ends), the characters that it writes
(`WRITTEN`), ranges (by Jinja), and the numbers that it may multiply by or pass on (`LARGEST`). It cannot change what
it is given, and reaches no attribute with an underscore and no file. What its variables hold is not bounded.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache, wraps
from typing import Any

from byhand.conversations.marks import CLOSE, OPEN
from byhand.conversations.messages import OURS
from byhand.errors import DataError, brief

STEPS = 500_000  # lines: a message takes a few
WRITTEN = 16_000_000  # characters
LARGEST = 100_000
FILE = "<template>"  # as Jinja names the code of a template from a string


class Template:
    """A compiled template. DataError in one line if it is none, or Jinja is not installed.

    tells  it says itself what the assistant generates: `{% generation %}` … `{% endgeneration %}`
    """

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        if any(mark in source for mark in OURS):
            raise DataError("the chat template holds a noncharacter of Unicode. Use another model.")
        self.tells = "endgeneration" in source
        self._tokens, self._time = dict(tokens), datetime.now()
        environment = _environment(self.now)
        with _one_line("cannot be used"):
            self._compiled = environment.from_string(source)

    def now(self, form: str) -> str:
        """Return the date, or whatever the form asks for; one template has one time, as long as it is used."""
        return self._time.strftime(form)

    def __call__(self, messages: list[dict[str, str]], prompt: bool = False) -> str:
        """Return the text of messages; with `prompt` up to where the assistant begins to answer.

        What the template says is generated stands between `OPEN` and `CLOSE`.
        """
        values = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": prompt}
        written, size = list[str](), 0
        with _one_line("refuses a conversation"), _limited():
            for piece in self._compiled.generate(**values, **self._tokens):
                written.append(piece)
                if (size := size + len(piece)) > WRITTEN:
                    raise ValueError(f"it writes more than {WRITTEN:,} characters")
        return "".join(written)


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever a template raises is its own
        raise DataError(f"the model's chat template {what}: {brief(error, 200)}.") from None


@contextmanager
def _limited() -> Iterator[None]:
    """Count the lines of the template that run in the `with` block, and end it after `STEPS`."""
    left, before = STEPS, sys.gettrace()

    def line(frame: Any, event: str, value: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"it does not end within {STEPS:,} steps")
        return line

    sys.settrace(lambda frame, event, value: line if frame.f_code.co_filename == FILE else None)
    try:
        yield
    finally:
        sys.settrace(before)


def _environment(now: Callable[[str], str]) -> Any:
    """Return Jinja's sandbox with what transformers offers to templates."""
    made = _sandbox()(trim_blocks=True, lstrip_blocks=True, extensions=[_generation(), "jinja2.ext.loopcontrols"])
    made.filters = {name: _guarded(function) for name, function in made.filters.items()}
    made.filters["tojson"] = _guarded(_to_json)
    del made.globals["lipsum"]
    made.globals |= {"raise_exception": _raise, "strftime_now": now}
    return made


def _raise(message: str) -> None:
    raise ValueError(message)


def _to_json(
    x: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def filtered(*args: Any, **kwargs: Any) -> Any:
        _require_small(*args, *kwargs.values())
        return function(*args, **kwargs)

    return filtered


def _require_small(*values: Any) -> None:
    if any(isinstance(value, int | float) and abs(value) > LARGEST for value in values):
        raise ValueError(f"it uses a number beyond {LARGEST:,}")


@lru_cache(1)
def _sandbox() -> Any:
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise DataError("the model's chat template is rendered by Jinja. Use pip install 'byhand[chat]'.") from None

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**", "%"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            sizes = [value if isinstance(value, int | float) else len(value) for value in (left, right)]
            if isinstance(left, str) and operator == "%":
                raise ValueError("it formats a text by %")
            _require_small(*sizes, sizes[1] * 1000 if operator == "**" else sizes[0] * sizes[1] // 1000)
            return super().call_binop(context, operator, left, right)

        def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:  # pyright: ignore
            _require_small(*args, *kwargs.values())
            return super().call(context, function, *args, **kwargs)

    return Sandbox


@lru_cache(1)
def _generation() -> Any:
    _sandbox()
    from jinja2 import nodes
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

        def _marked(self, caller: Callable[[], str]) -> str:
            return f"{OPEN}{caller()}{CLOSE}"

    return Generation
