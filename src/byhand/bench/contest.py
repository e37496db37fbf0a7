"""Contest: interleave the runs of alternatives, and compare medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from byhand.errors import ConfigError

REST = 0.3  # seconds


def by_turns(runs: Mapping[str, Callable[[], Any]], repeats: int, rounds: int = 5) -> dict[str, list[float]]:
    """Return seconds by name: in each round every run is warmed up once, then timed `repeats` times.

    The machine rests before each turn, until spinning threads have released their cores.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(REST)
            run()
            for _ in range(repeats):
                begun = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - begun)
    return seconds


def require_known(peers: Collection[str], known: Collection[str]) -> None:
    """Raise ConfigError for the first peer that is not known."""
    for peer in peers:
        if peer not in known:
            raise ConfigError(f"peer is {peer!r}. Use {', '.join(known)}.")


def repeats_for(run: Callable[[], Any], seconds: float) -> int:
    """Return how often a run fits into this time, at least twice."""
    run()
    begun = time.perf_counter()
    run()
    return max(2, round(seconds / (time.perf_counter() - begun)))


def milliseconds(seconds: list[float]) -> dict[str, float]:
    """Return median and smallest time in ms."""
    return {"ms_median": 1e3 * statistics.median(seconds), "ms_min": 1e3 * min(seconds)}
