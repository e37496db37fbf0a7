"""Training's progress: one live line on a terminal, plain lines in a pipe or a log."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from contextlib import suppress

from byhand.cli.terminal.say import say
from byhand.quantities import duration
from byhand.runs.trainer import Progress

PLAIN_LINES = 20  # in a whole run, not counting evaluations


class Display:
    """Shows each `Progress`; a context manager that restores the terminal."""

    def __init__(self, first_step: int) -> None:
        self._begun = time.monotonic()
        self._first = first_step
        self._rates: deque[float] = deque(maxlen=50)
        self._live = None
        if not (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb") and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=8, transient=True)

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            with suppress(OSError):
                self._live.stop()

    def show(self, progress: Progress) -> None:
        """Update the live line, or print a plain line now and then; an evaluation always leaves a line."""
        self._rates.append(progress.tokens_per_second)
        line = self._line(progress)
        every = max(1, progress.steps // PLAIN_LINES)
        if self._live:
            with suppress(OSError):
                self._live.update(line)
                if progress.val_loss is not None:
                    self._live.console.print(line, highlight=False, soft_wrap=True)
        elif progress.val_loss is not None or progress.step == self._first + 1 or progress.step % every == 0:
            say(line)

    def _line(self, p: Progress) -> str:
        val = "" if p.val_loss is None else f"  val {p.val_loss:.4f}"
        rate = sorted(self._rates)[len(self._rates) // 2]
        elapsed = time.monotonic() - self._begun
        left = elapsed / (p.step - self._first) * (p.steps - p.step)
        return f"step {p.step}/{p.steps}  loss {p.loss:.4f}{val}  {rate:,.0f} tokens/s  ETA {duration(left)}"
