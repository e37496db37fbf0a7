"""Ctrl-C as an exception that is not lost.

While a module is imported, importlib and C code drop exceptions: one that comes in a callback or in a check of a type
vanishes. So an interrupt waits for the end of the import.
"""

from __future__ import annotations

import sys
from types import FrameType


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt: here, or at the end of the import that is under way."""
    importing = _outermost_import(frame)
    if importing is None:
        raise KeyboardInterrupt
    before = sys.getprofile()

    def at_its_end(here: FrameType, event: str, argument: object) -> None:
        if here is importing and event == "return":
            sys.setprofile(before)
            raise KeyboardInterrupt

    sys.setprofile(at_its_end)


def _outermost_import(frame: FrameType | None) -> FrameType | None:
    found = None
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            found = frame
        frame = frame.f_back
    return found
