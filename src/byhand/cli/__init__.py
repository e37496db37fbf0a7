"""The command line: one file a command, and the only place that parses arguments."""

import sys
from types import TracebackType


def _say_interrupted(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say in one word that Ctrl-C came while the program was still being imported; other errors as Python does."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _say_interrupted
