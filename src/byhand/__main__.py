"""`byhand` as a process: a Ctrl-C that comes too early or too late for the command ends it without a traceback."""

import signal
import sys


def main() -> int:
    """Run the command; return its exit code."""
    before = signal.getsignal(signal.SIGINT)  # ignored under nohup
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from byhand.cli.main import main as command

    code = 130
    try:
        signal.signal(signal.SIGINT, before)
        code = command()
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:  # while the command answered another
        pass
    return code


if __name__ == "__main__":
    sys.exit(main())
