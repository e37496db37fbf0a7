"""`byhand` as a process: a Ctrl-C too early, too late, or while another is answered ends it without a traceback."""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run the command; return its exit code."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, as under nohup
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from byhand.cli.main import main as command

    code = 130
    try:
        if ours:
            signal.signal(signal.SIGINT, _interrupt)
        code = command()
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:  # before the command could answer it
        pass
    return code


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Let the command end by an exception; the next Ctrl-C, while it cleans up, ends the process at once."""
    signal.signal(signal.SIGINT, _end)
    raise KeyboardInterrupt


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
