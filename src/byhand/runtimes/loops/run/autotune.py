"""Autotuner: re-times the alternatives now and then and picks the fastest."""

from __future__ import annotations

from math import ceil, inf

TRIAL, ENOUGH = 8, 0.004  # units of work that tell how fast a way is, or seconds of them
PATIENCE = 50  # a slower way is tried again after so many times what a trial loses: about 2% of the time
CALM = 4  # times that long, while work goes about as fast as it ever went: then nothing has come that may have gone
AS_EVER = 1.25  # times what the fastest way took at best
ALIKE = 0.1  # of a trial it counts as lost at least
CLEARLY = 1.5  # times as fast: as beside other programs, not as where the memory bounds both ways


class Autotuner:
    """Choose among ways 0 .. n - 1 by the seconds that each last took for a unit of work."""

    def __init__(self, ways: int) -> None:
        self._seconds = [0.0] * ways  # for a unit; 0 before the first trial
        self._last = [0.0] * ways  # as it was measured
        self._due = [0.0] * ways
        self._best = inf  # of any way, ever
        self._clock = 0.0

    @property
    def fastest(self) -> int:
        """The way that is the fastest as far as is known."""
        return min(range(len(self._seconds)), key=lambda way: self._seconds[way] or inf)

    @property
    def for_other_work(self) -> int:
        """The way for work of another kind: the first, unless another is clearly faster in this."""
        best = self.fastest
        return best if self._seconds[best] * CLEARLY < self._seconds[0] else 0

    def choose(self) -> int:
        """Return the way for the next piece of work: one whose trial is due, else the fastest."""
        best = min(range(len(self._seconds)), key=self._seconds.__getitem__)
        waiting = [i for i, due in enumerate(self._due) if i != best and due <= self._clock]
        return waiting[0] if waiting and self._seconds[best] else best

    def units(self, way: int, wanted: int) -> int:
        """Return how much to do in this way: little if another is expected to be faster, or it was never tried.

        Where a unit is long, one or two tell enough; so what a slower way loses is little, and it is tried often.
        """
        usual = self._seconds[way]
        if usual and usual <= min(self._seconds):
            return wanted
        unit = usual or self._seconds[self.fastest]
        return min(TRIAL, wanted, ceil(ENOUGH / unit) if unit else TRIAL)

    def note(self, way: int, units: int, seconds: float) -> None:
        """Remember how long a piece of work took.

        A short piece that was somewhat slower than usual says nothing: waking the threads is part of it. A much
        slower one counts when the next confirms it: another program may have had the processor for a moment.
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
