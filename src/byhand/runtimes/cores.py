"""The cores that this process may use."""

import os

MOST_THREADS = 1024


def cores() -> int:
    """Return the number of cores that this process may use, at most MOST_THREADS."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MOST_THREADS)
