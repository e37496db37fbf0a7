"""Durations, counts and sizes in readable form."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 head, 2,000 heads."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def in_units(number: float, unit: str) -> str:
    """Return three or more digits with the largest prefix that keeps the number at least 1: 1.986 GB, 0 B."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3f} {prefix}{unit}"
    return f"{number:.0f} {unit}"


def duration(seconds: float) -> str:
    """Return seconds as 42s, 3m 05s, or 2h 10m."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02d}s"
    return f"{seconds // 3600}h {seconds % 3600 // 60:02d}m"
