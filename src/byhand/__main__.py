"""`byhand` and `train_gpt` as processes; on a signal they end with one line, never a traceback."""

import signal
import sys
from importlib import import_module


def main() -> int:
    """Run `byhand`; return its exit code."""
    return _process("byhand.cli.main")


def train_gpt() -> int:
    """Run `train_gpt`; return its exit code."""
    return _process("byhand.cli.seed.train_gpt")


def _process(module: str) -> int:
    """Import a command line and run its `main`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise ignored, as under nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback from here on
    interrupts = import_module("byhand.cli.terminal.interrupts")
    interrupts.receive()
    code = import_module(module).main()
    interrupts.release()
    return import_module("byhand.cli.terminal.ending").end(code)


if __name__ == "__main__":
    sys.exit(main())
