"""KeyboardInterrupt at a chosen point of some files' code, in this thread: no clock and no luck."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import Any


@contextmanager
def interrupted(at: int, *files: str, event: str = "line") -> Iterator[list[str]]:
    """Raise KeyboardInterrupt at the `at`-th line (or "opcode") of the files; yield a list that gets its place."""
    left, where = at, []

    def trace(frame: FrameType, kind: str, argument: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(files):
            return None
        frame.f_trace_opcodes = event == "opcode"
        if kind == event:
            if left == 0:
                where.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
                raise KeyboardInterrupt
            left -= 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield where
    finally:
        sys.settrace(before)


def at_every_point(
    run: Callable[[], Any],
    *files: str,
    event: str = "line",
    every: int = 1,
    begin: Callable[[], Any] = lambda: None,
) -> Iterator[str]:
    """Interrupt `run` at its first point, its second, ...; yield each place, until it ends before the point.

    every  takes one point of so many
    begin  runs before each, and is not interrupted
    """
    for at in count(step=every):
        begin()
        try:
            with interrupted(at, *files, event=event) as where:
                run()
        except KeyboardInterrupt:
            pass
        if not where:
            return
        yield where[0]
