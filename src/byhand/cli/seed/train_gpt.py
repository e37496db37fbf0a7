"""`train_gpt`: the original program's command line: same flags, same batches, same printed digits."""

import sys
from importlib import import_module

from byhand.cli.main import as_process


def main() -> int:
    """Run the console script and return its exit code, as `byhand` does; `--debug` may stand anywhere."""
    arguments = sys.argv[1:]
    debug = ["--debug"] * ("--debug" in arguments)
    return as_process(_command, debug + [a for a in arguments if a != "--debug"], "train_gpt")


def _command(arguments: list[str]) -> int:
    return import_module("byhand.cli.seed.train_gpt_program").main(arguments)
