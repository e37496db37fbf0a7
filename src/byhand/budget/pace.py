"""The pace of a run with a time limit: its number of steps, estimated again while it trains.

Other programs come and go, so steps may take longer, or less, than when the probe timed them. The learning rate's
schedule is in steps: with fewer of them its cool-down begins earlier, and the run still ends at the lowest rate.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from byhand.budget.choice import PlannedRun
from byhand.budget.probe import Cost

EARLY = 0.035  # of the time: a run that would end so much too early gets more steps
AIM = 0.02  # of the time: how long before its end a run that changed is to end
MARKS = 0.002  # of the time between two marks of the pace
SHORTEST, FEWEST = 0.02, 8  # of the time, and steps: the shortest past that gives the pace
GAP, LONG = 10, 0.005  # times the pace, and of the time: one step that takes both was interrupted, as by Ctrl-Z
SAMPLES = 3  # of an evaluation or a save: its price is their median, so that one outlier does not count


class Pace:
    """The steps that fit the time of a run.

    choice  the run as it was planned        left    returns the seconds until it has to end
    cost    what the probe measured of it    budget  seconds of the whole command
    """

    def __init__(self, choice: PlannedRun, cost: Cost, budget: float, left: Callable[[], float]) -> None:
        self._config, self._most, self._left, self._budget = choice.config, choice.most, left, budget
        self._probed = self._pace = cost.step
        self._planned = {"evaluation": cost.evaluation, "saving": choice.saving}
        self._timed = {what: deque[float](maxlen=SAMPLES) for what in self._planned}
        self._aside = 0.0  # seconds of evaluations and saves, and of interruptions
        self._paused = 0.0
        self._last, self._interrupted = time.monotonic(), True  # the first step may wait for much
        self._marks: deque[tuple[float, int]] = deque()

    @contextmanager
    def aside(self, what: str) -> Iterator[None]:
        """Time an "evaluation" or a "saving", apart from the steps; update its price."""
        begun = time.monotonic()
        yield
        took = time.monotonic() - begun
        self._timed[what].append(took)
        self._aside += took

    def pause(self, seconds: float) -> None:
        """Leave out some seconds in which the run waited for somebody."""
        self._paused += seconds
        self._aside += seconds

    def steps(self, step: int, steps: int) -> int:
        """Return how many steps the run should make, after `step` of `steps`."""
        now, left, budget, marks = self._now(), self._left() + self._paused, self._budget, self._marks
        late = left <= 0
        if marks and now - marks[-1][0] < MARKS * budget and not late:
            return steps
        marks.append((now, step))
        # Predict the rest from a past half as long, at least a quarter: a short load early in the run says little
        # about its end, and the probe knows better.
        since = now - max(SHORTEST * budget, left / 2)
        while len(marks) > 1 and marks[1][0] <= since and marks[1][1] <= step - FEWEST:
            marks.popleft()
        since, first = marks[0]
        if late:
            return step
        if now - since < max(SHORTEST * budget, left / 4) or step - first < min(FEWEST, steps // 4):
            return steps
        self._pace = (now - since) / max(1, step - first)
        each, once = self._prices()
        ends = (steps - step) * each + once
        if left - EARLY * budget - each <= ends <= left:
            return steps
        fitting = step + max(0, int((left - AIM * budget - once) / each))
        return min(fitting, steps if ends > left else max(steps, self._most))

    def _now(self) -> float:
        """Return the time without what `aside` timed. Leave out one interrupted step; count a second one."""
        now = time.monotonic() - self._aside
        took, self._last = now - self._last, now
        long = took > max(GAP * self._pace, LONG * self._budget)
        if long and not self._interrupted:
            self._aside += took - self._pace
            self._last = now = now - (took - self._pace)
        self._interrupted = long
        return now

    def _prices(self) -> tuple[float, float]:
        """Return the seconds of a step with its share of what is done between steps, and of what ends the run."""
        slower, each = max(1.0, self._pace / self._probed), self._pace
        prices = {
            what: statistics.median_low(timed) if (timed := self._timed[what]) else planned * slower
            for what, planned in self._planned.items()
        }
        for what, interval in (("evaluation", self._config.eval_interval), ("saving", self._config.save_interval)):
            each += prices[what] / interval if interval else 0.0
        return each, sum(prices.values())
