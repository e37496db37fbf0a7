"""`byhand` and `train_gpt` as processes: Ctrl-C never ends them with a traceback."""

import os
import signal
import sys
from importlib import import_module
from types import FrameType


def main() -> int:
    """Run `byhand`; return its exit code."""
    return _process("byhand.cli.main")


def train_gpt() -> int:
    """Run `train_gpt`; return its exit code."""
    return _process("byhand.cli.seed.train_gpt")


def _process(module: str) -> int:
    """Import a command line and run its `main`. Until `main` begins and once it is over, Ctrl-C ends the process."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, as under nohup
    code = 130
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = import_module(module).main
    import_module("byhand.cli.terminal.interruption")  # while Ctrl-C cannot raise inside the import
    try:
        if ours:
            signal.signal(signal.SIGINT, _interrupt)
        code = command()
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:  # before the command's own handler
        pass
    return import_module("byhand.cli.terminal.ending").end(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Let the command end by an exception; the next Ctrl-C, while it cleans up, ends the process at once."""
    signal.signal(signal.SIGINT, _end)
    import_module("byhand.cli.terminal.interruption").interrupt(number, frame)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
