"""Durations and counts as people read them."""


def counted(count: int, noun: str) -> str:
    """Return a number of things: 1 head, 2 heads."""
    return f"{count} {noun}{'s' * (count != 1)}"


def duration(seconds: float) -> str:
    """Return seconds as 42s, 3m 05s, or 2h 10m."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02d}s"
    return f"{seconds // 3600}h {seconds % 3600 // 60:02d}m"
