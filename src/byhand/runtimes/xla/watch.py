"""Notices hosts that died or hang: a computation that waits for one would wait for ever.

Each host beats every second. One that was not heard for LOST seconds is gone, one that beats but does not go on for
`patience` seconds hangs; then every other host ends with a line. Times are of each host's own clock.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

LOST = 15.0  # seconds without a beat
PAUSE = 2.0  # seconds in which a thread that wakes ten times a second did not: the process stood still
OUTSIDE = 6  # times the patience for what is no step: compiling, saving
PREFIX = "byhand"


class Watch:
    """Two threads of a process: one beats and reads the others' beats, one judges, even if the first one is stuck.

    client    JAX's, which holds the keys and values of all hosts
    patience  seconds for a step
    ended     called with a line when another host is gone or hangs; it ends the process
    clock     returns seconds
    """

    def __init__(
        self,
        client: Any,
        index: int,
        count: int,
        patience: float,
        ended: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._index = client, index
        self._patience, self._lost = patience, min(LOST, patience / 2)
        self._ended, self._clock = ended, clock
        self._step, self._limit = 0, OUTSIDE * patience
        self._gone = ""
        self._beats: dict[str, str] = {}  # by host: its last beat, "count step"
        self._changed = {str(i): clock() for i in range(count)}
        self._answered = self._moved = clock()
        self._over = threading.Event()

    def start(self) -> None:
        """Start the threads."""
        for work in (self._beat, self._judge):
            threading.Thread(target=work, name=f"byhand-{work.__name__}", daemon=True).start()

    def mark(self, step: int, inside: bool) -> None:
        """Take note that this process goes on, inside of a step or outside."""
        self._moved = self._clock()  # first: another thread holds it against the limit at any moment
        self._step, self._limit = step, self._patience * (1 if inside else OUTSIDE)

    def end(self) -> None:
        """Stop watching: the hosts end, each in its own time."""
        self._over.set()

    def _beat(self) -> None:
        for count in itertools.count(1):
            if self._over.wait(min(1.0, self._lost / 5)):
                return
            self.exchange(count)

    def exchange(self, count: int) -> None:
        """Beat for the n-th time, and read the others' beats."""
        try:
            key = f"{PREFIX}/beat/{self._index}"
            self._client.key_value_set(key, f"{count} {self._step}", allow_overwrite=True)
            beats = self._of_all("beat")
            gone = self._of_all("gone")
        except Exception:  # whatever JAX raises if the coordinator does not answer: `verdict` counts the seconds
            return
        now = self._clock()
        for host, beat in beats.items():
            if self._beats.get(host) != beat:
                self._changed[host] = now
        self._beats, self._answered = beats, now
        self._gone = next((f"host {host} ended: {why}" for host, why in sorted(gone.items())), "")

    def _of_all(self, what: str) -> dict[str, str]:
        found = self._client.key_value_dir_get(f"{PREFIX}/{what}/")
        return {key.rsplit("/", 1)[1]: value for key, value in found}

    def paused(self, seconds: float) -> None:
        """Take off the seconds in which this process stood still: nobody else is to blame for them."""
        now = self._clock()  # what was heard since then is not in the future
        self._changed = {host: min(now, last + seconds) for host, last in self._changed.items()}
        self._answered = min(now, self._answered + seconds)
        self._moved = min(now, self._moved + seconds)

    def _judge(self) -> None:
        before = self._clock()
        while not self._over.wait(0.1):
            now = self._clock()
            if now - before > PAUSE:
                self.paused(now - before)
            before = now
            if (line := self.verdict()) and not self._over.is_set():
                self._ended(line)
                return

    def verdict(self) -> str:
        """Return in a line which host is gone or hangs; "" if none is."""
        now = self._clock()
        if self._gone:
            return self._gone
        if now - self._answered > self._lost:
            return f"host 0 is gone: its coordinator has not answered for {self._lost:.0f} s."
        for host, last in sorted(self._changed.items()):
            if now - last > self._lost + 1 and host != str(self._index):
                return f"host {host} is gone: it was not heard for {self._lost:.0f} s."
        if now - self._moved > self._limit:
            steps = {host: int(beat.split()[1]) for host, beat in self._beats.items()}
            behind = [host for host, step in steps.items() if step < max(steps.values())]
            who = f"host {behind[0]} hangs" if len(behind) == 1 else "a host hangs"
            return f"{who}: no host went on for {self._limit:.0f} s, at step {self._step + 1}."
        return ""
