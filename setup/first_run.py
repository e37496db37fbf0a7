"""The first run: train, then show what the model writes; in one process, which receives every signal."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count, pairwise
from pathlib import Path


def first_run(arguments: list[str]) -> int:
    """Train with these flags of `byhand train`, sample, and say what to try next; return the exit code."""
    from byhand.cli.main import main
    from byhand.cli.terminal import interrupts

    interrupts.receive()
    given = {flag: value for argument in arguments for flag, _, value in [argument.partition("=")]}
    if {"--resume", "--help"} & given.keys():
        return main(["train", *arguments])
    folder = given.get("--out") or next((b for a, b in pairwise(arguments) if a == "--out"), free_folder())
    if code := main(["train", "--out", folder, *arguments]):
        return code
    print("\nA sample:\n", flush=True)
    code = main(["sample", folder, "--prompt", "def ", "--max-new-tokens", "400"])
    command = os.path.relpath(Path(sys.executable).with_name("byhand"))
    print(
        f"\nThree things to try next:\n"
        f"  {command} sample {folder} --prompt 'import ' --temperature 0.5\n"
        f"  {command} plot {folder}\n"
        f"  {command} train --data YOUR_TEXT.txt --minutes 5"
    )
    return code


def free_folder() -> str:
    """Return the first of runs/first, runs/first-2, ... of this checkout that does not exist."""
    runs = Path(__file__).resolve().parents[1] / "runs"
    names = ("first" if number == 1 else f"first-{number}" for number in count(1))
    return os.path.relpath(next(runs / name for name in names if not (runs / name).exists()))


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until byhand receives it
    sys.exit(first_run(sys.argv[1:]))
