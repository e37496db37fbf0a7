"""`train_gpt`: the seed program's command line, beside ours. Same flags, same batches, same printed digits."""

import sys

from byhand.cli.main import run


def main() -> int:
    """Run the console script and return its exit code: 0 done, 2 bad input, 130 interrupted."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    return run("byhand.cli.train_gpt_program", [a for a in arguments if a != "--debug"], debug)
