"""Autotuner: re-times the alternatives now and then and picks the fastest."""

from __future__ import annotations

from math import ceil, inf

TRIAL, ENOUGH = 8, 0.004  # units, or seconds, of work that suffice to time a way
PATIENCE = 50  # retry a slower way after this multiple of a trial's loss: about 2% of the time
CALM = 4  # factor on PATIENCE while work is about as fast as ever: no disturbance can have ended
AS_EVER = 1.25  # within this factor of the best time, work is as fast as ever
ALIKE = 0.1  # least share of a trial that counts as lost
CLEARLY = 1.5  # factor seen when other programs run, not when memory bounds both ways


class Autotuner:
    """Choose among ways 0 .. n - 1 by the latest seconds per unit of work."""

    def __init__(self, ways: int) -> None:
        self._seconds = [0.0] * ways  # per unit; 0 before the first trial
        self._last = [0.0] * ways  # the latest measurement
        self._due = [0.0] * ways
        self._best = inf  # of any way, ever
        self._clock = 0.0

    @property
    def fastest(self) -> int:
        """The fastest way known."""
        return min(range(len(self._seconds)), key=lambda way: self._seconds[way] or inf)

    @property
    def for_other_work(self) -> int:
        """The way for another kind of work: the first, unless another is clearly faster here."""
        best = self.fastest
        return best if self._seconds[best] * CLEARLY < self._seconds[0] else 0

    def choose(self) -> int:
        """Return the way for the next piece of work: one whose trial is due, else the fastest."""
        best = min(range(len(self._seconds)), key=self._seconds.__getitem__)
        waiting = [i for i, due in enumerate(self._due) if i != best and due <= self._clock]
        return waiting[0] if waiting and self._seconds[best] else best

    def units(self, way: int, wanted: int) -> int:
        """Return how many units to do this way: few if another is expected to be faster, or it was never tried.

        If a unit is long, one or two suffice; so trials of slower ways lose little and can be frequent.
        """
        usual = self._seconds[way]
        if usual and usual <= min(self._seconds):
            return wanted
        unit = usual or self._seconds[self.fastest]
        return min(TRIAL, wanted, ceil(ENOUGH / unit) if unit else TRIAL)

    def note(self, way: int, units: int, seconds: float) -> None:
        """Record how long a piece of work took.

        A short piece that is somewhat slower than usual is ignored, since it includes waking the threads. A much
        slower one counts if the next confirms it: another program may have taken the processor for a moment.
        """
        usual, before, unit = self._seconds[way], self._last[way], seconds / units
        self._last[way] = unit
        if units >= TRIAL or seconds >= ENOUGH or not usual < unit < 2 * usual:
            self._seconds[way] = min(unit, before or unit)
        self._clock += seconds
        now = self._seconds[self.fastest]
        self._best = min(self._best, now)
        lost = max(unit - now, ALIKE * unit) * min(units, TRIAL)
        self._due[way] = self._clock + PATIENCE * lost * (CALM if now <= AS_EVER * self._best else 1)
