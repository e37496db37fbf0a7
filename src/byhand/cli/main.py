"""`byhand COMMAND ...`: finds the command's file, runs it, and turns what went wrong into one line.

Exit codes: 0 done; 1 a question answered with no; 2 bad input; 130 interrupted. Nothing heavy is imported here,
so that `byhand --help` answers at once.
"""

import io
import os
import sys
from importlib import import_module

from byhand import __version__
from byhand.cli import clock
from byhand.cli.say import say_what_is_logged
from byhand.errors import ByhandError

COMMANDS = {
    "train": "Train a GPT on your own text, or resume a run.",
    "sample": "Continue a prompt with a trained model.",
    "eval": "Measure a model on a text: nats and bits per byte.",
    "info": "Say what a run holds: shape, steps, checkpoints.",
    "plot": "Draw a run's loss in the terminal, and as PNG with matplotlib.",
    "where": "Say where an equation is implemented: by name, words or formula, in English or Chinese.",
    "explain": "Explain one number of a model: its equation, its terms, and what it was made from.",
    "work": "Work an example on paper, step by step, or be asked for each number.",
    "worksheet": "Write a worksheet and its answer key, to print.",
    "grade": "Grade a filled-in worksheet, step by step.",
    "bench": "Time training here, beside PyTorch in the same run.",
    "plan": "Show the kernel calls that a training step becomes, and where its time goes.",
    "doctor": "Say what this machine offers: cores, CPU features, BLAS, compiled code.",
}

USAGE = """usage: byhand [--debug] COMMAND [options]

A GPT whose every number can be worked by hand, and that trains at full speed.

{commands}

options:
  --help      this page; `byhand COMMAND --help` for a command's own
  --version   print the version
  --debug     before the command: show the traceback of an error
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    clock.start()
    open_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = arguments[:1] == ["--debug"]
    arguments = arguments[debug:]
    if arguments[:1] == ["help"] and len(arguments) > 1:
        arguments = [arguments[1], "--help"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        print(USAGE.format(commands="\n".join(f"  {n:<{width}}  {s}" for n, s in COMMANDS.items())), end="")
        return 0
    if arguments[0] == "--version":
        print(f"byhand {__version__}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        from difflib import get_close_matches

        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Use one of {', '.join(COMMANDS)}."
        print(f"error: there is no command {name!r}. {hint}", file=sys.stderr)
        return 2
    return run(f"byhand.cli.{name}", rest, debug)


def open_streams() -> None:
    """Write UTF-8 whatever the locale says, so that Chinese and sampled bytes never end a command.

    A stream that was closed before the start reads as empty, or swallows what is written.
    """
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 (open for as long as the process)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def run(module: str, arguments: list[str], debug: bool = False) -> int:
    """Run the `main(arguments)` of a command's module; errors of the caller's become one line and exit code 2."""
    say_what_is_logged()
    try:
        code = import_module(module).main(arguments)
        sys.stdout.flush()
        return code
    except ByhandError as error:
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `byhand ... | head` closed the pipe: nothing is wrong, and nothing can be printed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if debug:
            raise
        print(f"error: cannot use {error.filename or 'the output'}: {error.strerror or error}.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in its buffer has nowhere to go
        return 2
    except MemoryError as error:
        if debug:
            raise
        print(
            f"error: not enough memory: {error or 'for these sizes'}. Use smaller sizes or batches.", file=sys.stderr
        )
        return 2
    except KeyboardInterrupt:
        if debug:
            raise
        print("interrupted", file=sys.stderr)
        return 130
