"""Ctrl-C as an exception that is not lost.

While a module is imported, importlib and C code drop exceptions: one that comes in a callback or in a check of a type
vanishes. So an interrupt waits until no import is under way.
"""

from __future__ import annotations

import sys
from types import FrameType


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt: here, or at the first call behind the imports that are under way."""
    if _importing(frame):
        sys.setprofile(_behind_imports)
        return
    raise KeyboardInterrupt


def _behind_imports(frame: FrameType, event: str, argument: object) -> None:
    if not _importing(frame):
        sys.setprofile(None)
        raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
