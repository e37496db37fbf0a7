"""The watch notices hosts that died or hang; computations would wait for them for ever.

Each host sends a heartbeat every second. A host without a heartbeat for LOST seconds is gone; one without progress
for `patience` seconds hangs. Then every other host ends with a message. Each host uses its own clock.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

LOST = 15.0  # seconds without a heartbeat
PAUSE = 2.0  # a thread that wakes ten times a second sleeps this long only if the process was suspended
OUTSIDE = 6  # factor on the patience outside a step: compiling, saving
PREFIX = "byhand"


class Watch:
    """Two threads: one exchanges heartbeats, the other judges them, even if the first one is stuck.

    client    JAX's client of the key-value store
    patience  seconds for a step
    ended     called with a message when another host is gone or hangs; it ends the process
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
        self._beats: dict[str, str] = {}  # by host: its last heartbeat, "count step"
        self._changed = {str(i): clock() for i in range(count)}
        self._answered = self._moved = clock()
        self._over = threading.Event()

    def start(self) -> None:
        """Start the threads."""
        for work in (self._beat, self._judge):
            threading.Thread(target=work, name=f"byhand-{work.__name__}", daemon=True).start()

    def mark(self, step: int, inside: bool) -> None:
        """Note this process's progress, inside or outside a step."""
        self._moved = self._clock()  # first, since another thread compares it with the limit at any moment
        self._step, self._limit = step, self._patience * (1 if inside else OUTSIDE)

    def end(self) -> None:
        """Stop watching, since hosts end one after another."""
        self._over.set()

    def _beat(self) -> None:
        for count in itertools.count(1):
            if self._over.wait(min(1.0, self._lost / 5)):
                return
            self.exchange(count)

    def exchange(self, count: int) -> None:
        """Send heartbeat number `count`, and read those of the others."""
        try:
            key = f"{PREFIX}/beat/{self._index}"
            self._client.key_value_set(key, f"{count} {self._step}", allow_overwrite=True)
            beats = self._of_all("beat")
            gone = self._of_all("gone")
        except Exception:  # any error of JAX while the coordinator does not answer: `verdict` counts the seconds
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
        """Discount the seconds in which this process was suspended: no other host caused them."""
        now = self._clock()  # no heartbeat is in the future
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
        """Return a message naming the host that is gone or hangs; "" if there is none."""
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
