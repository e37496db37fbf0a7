"""The first run: train, then show what the model writes; in one process, which receives every signal.

`dev.py run` calls it as `first_run.py COMMAND FOLDER given|made TRAIN_ARGUMENTS...`: how the user starts byhand from
the current folder, the run folder, and whether `dev.py` made that folder.
"""

import signal
import sys
from contextlib import suppress
from pathlib import Path


def first_run(command: str, folder: str, made: str, arguments: list[str]) -> int:
    """Train, sample, and say what to try next; return the exit code."""
    from byhand.cli.main import main
    from byhand.cli.terminal import interrupts

    interrupts.receive()
    code = main(["train", *arguments])
    if code:
        if made == "made":
            with suppress(OSError):
                Path(folder).rmdir()  # if nothing was written
        return code
    print("\nA sample:\n", flush=True)
    code = main(["sample", folder, "--prompt", "def ", "--max-new-tokens", "400"])
    print(
        f"\nThree things to try next:\n"
        f"  {command} sample {folder} --prompt 'import ' --temperature 0.5\n"
        f"  {command} plot {folder}\n"
        f"  {command} train --data YOUR_TEXT.txt --steps 2000"
    )
    return code


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until byhand receives it
    sys.exit(first_run(*sys.argv[1:4], sys.argv[4:]))
