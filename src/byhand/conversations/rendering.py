"""Renders chat templates, as a program in a process of its own, which `sandbox.py` starts.

It imports Jinja, from the folders given as arguments, and nothing of byhand, so that it starts fast. A request is
a line of JSON; its answer is a line "KIND BYTES", that many bytes of text, and a line of `places` in JSON.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import faulthandler
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

MEMORY = 1 << 29  # bytes of the whole process
WRITTEN = 16_000_000  # characters of a text
OPEN, CLOSE = "\ufdd0\ufdd1"  # noncharacters around text that the template marks as generated


def main() -> None:
    """Answer requests until the input ends."""
    sys.path += sys.argv[1:]
    environment()
    with suppress(ImportError):
        import resource  # of POSIX; macOS has it, but does not limit memory

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(
            resource.RLIMIT_AS, (MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard), hard)
        )
    for line in sys.stdin.buffer:
        kind, text, places = answer(json.loads(line))
        content = text.encode(errors="surrogatepass")
        sys.stdout.buffer.write(
            b"%s %d\n%s%s\n" % (kind.encode(), len(content), content, json.dumps(places).encode())
        )
        sys.stdout.buffer.flush()


def answer(asked: Mapping[str, Any]) -> tuple[str, str, list[int]]:
    """Return "text", the text of a conversation and the places of its cuts; else "unusable" or "refused", and why.

    A cut is a number of messages and whether the assistant is to answer; its place is the length of its text if the
    whole text begins with it, else -1.
    """
    kind = "unusable"
    try:
        template = _timed(asked["seconds"], compiled, asked["source"])
        now = datetime.fromisoformat(asked["now"])
        fixed = {"tools": None, "documents": None, **asked["values"], "strftime_now": now.strftime}
        kind = "refused"

        def text(count: int | None, prompt: bool) -> str:
            values = {"messages": asked["messages"][:count], "add_generation_prompt": prompt}
            return _timed(asked["seconds"], _rendered, template, {**fixed, **values})

        whole = text(None, asked["prompt"])
    except Exception as error:  # a template may raise anything
        large = f"it needs more than {MEMORY >> 20} MB of memory" if isinstance(error, MemoryError) else ""
        return kind, large or str(error)[:2000] or type(error).__name__, []
    places = list[int]()
    for cut in asked["cuts"]:
        begin = None
        with suppress(Exception):
            begin = text(*cut)
        places.append(len(begin) if begin is not None and whole.startswith(begin) else -1)
    return "text", whole, places


def _timed(seconds: float, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function; end the process with code 1 if it takes longer, even in a loop of C."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        return function(*args)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _rendered(template: Any, values: Mapping[str, Any]) -> str:
    written, size = list[str](), 0
    for piece in template.generate(**values):
        written.append(piece)
        if (size := size + len(piece)) > WRITTEN:
            raise ValueError(f"it writes more than {WRITTEN:,} characters")
    return "".join(written)


@lru_cache(8)
def compiled(source: str) -> Any:
    """Return a template."""
    return environment().from_string(source)


@lru_cache(1)
def environment() -> Any:
    """Return Jinja's sandbox with what transformers offers to templates."""
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

        def _marked(self, caller: Callable[[], str]) -> str:
            return f"{OPEN}{caller()}{CLOSE}"

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    made.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
    del made.filters["striptags"], made.globals["lipsum"]  # `striptags` writes signs that a message does not hold
    made.globals["raise_exception"] = _raise
    return made


def _raise(message: Any) -> None:
    raise ValueError(str(message))  # `str` now, while it is timed


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        sys.exit(2)  # 1 says that it took too long
