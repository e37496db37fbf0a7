"""`byhand COMMAND ...`: find the command's file, run it, and turn an error into one line.

Exit codes: 0 done; 1 a question answered with no; 2 bad input; 70 a defect of byhand; 75 another host
is gone; 130 interrupted. Nothing heavy is imported here, so that `byhand --help` answers at once.
"""

import sys
from collections.abc import Callable
from importlib import import_module

from byhand.cli.terminal import clock
from byhand.cli.terminal.guard import guarded, open_streams
from byhand.cli.terminal.say import say_what_is_logged, show, show_names
from byhand.cli.terminal.shown import quoted
from byhand.errors import ByhandError, suggestion
from byhand.version import __version__

LONGEST_NAME = 40  # characters of a word that is compared with the commands' names

COMMANDS = {  # name: (folder of its file, line of help)
    "train": ("runs", "Train a GPT on your own text, or resume a run."),
    "sample": ("runs", "Continue a prompt with a trained model."),
    "chat": ("runs", "Talk with a trained model, line by line."),
    "serve": ("runs", "Serve a model at OpenAI's endpoints, for other programs."),
    "eval": ("runs", "Measure a model on a text: nats and bits per byte."),
    "info": ("runs", "Show a run's shape, steps and checkpoints."),
    "runs": ("runs", "List the runs in a folder, with their last validation loss."),
    "tokenizer": ("runs", "Learn tokens from a text by byte-pair encoding; encode, decode, inspect, convert."),
    "plot": ("runs", "Draw the loss of a run, or compare runs, in the terminal, as PNG, CSV or for TensorBoard."),
    "import": ("exchange", "Turn a model from Hugging Face, a GGUF, llm.c or nanoGPT into a run."),
    "export": ("exchange", "Write a run's model for transformers or llama.cpp."),
    "where": ("learn", "Find where an equation is implemented, by name, words or formula, in English or Chinese."),
    "explain": ("learn", "Explain one number of a model: its equation, its terms, and its inputs."),
    "explore": ("runs", "Look at every number of a model in the browser, forwards and backwards."),
    "work": ("learn", "Work an example on paper, step by step, or answer a quiz on it."),
    "worksheet": ("learn", "Write a worksheet and its answer key, to print."),
    "grade": ("learn", "Grade a filled-in worksheet, step by step."),
    "port": ("learn", "Check the numbers of your own port of the model, or name its mistake."),
    "break": ("learn", "Show what a mistake does to training, and whether the loss shows it."),
    "bench": ("measure", "Time training on this machine, with PyTorch in the same run."),
    "plan": ("measure", "Show the kernel calls of a training step, and the time of each."),
    "doctor": ("measure", "Show this machine's cores, CPU features, BLAS and compiled code."),
}
ELSEWHERE = {"generate": "sample", "finetune": "train", "convert": "import", "quantize": "export", "ls": "runs"}

USAGE = """usage: byhand [--debug] COMMAND [options]

A GPT whose every number can be checked by hand,
and that trains at full speed.
"""
OPTIONS = {
    "--help": "this page; `byhand COMMAND --help` for a command's own",
    "--version": "print the version",
    "--debug": "before the command: show the traceback of an error",
}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return as_process(_command, sys.argv[1:] if argv is None else argv)


def as_process(command: Callable[[list[str]], int], arguments: list[str], prog: str = "byhand") -> int:
    """Run a console script's command with the arguments after `--debug`, and return its exit code."""
    clock.start()
    open_streams()
    say_what_is_logged()
    count = next((i for i, argument in enumerate(arguments) if argument != "--debug"), len(arguments))
    return guarded(lambda: command(arguments[count:]), count > 0, prog)


def _command(arguments: list[str]) -> int:
    """Print the help or the version, or run the command that the first argument names."""
    if arguments[:1] == ["help"] and len(arguments) > 1:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        show(USAGE)
        show_names({name: words for name, (_, words) in COMMANDS.items()})
        show("\noptions:")
        show_names(OPTIONS)
        return 0
    if arguments[0] == "--version":
        show(f"byhand {__version__}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        hint = suggestion(ELSEWHERE.get(name, name)[:LONGEST_NAME], COMMANDS)
        raise ByhandError(f"there is no command {quoted(name)}. {hint}")
    return import_module(f"byhand.cli.{COMMANDS[name][0]}.{name}").main(rest)
