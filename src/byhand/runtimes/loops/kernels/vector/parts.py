"""How threads divide a row: each takes a range of its columns."""

# pyright: reportMissingImports=false
from byhand.runtimes.loops.machine.native import compiled


@compiled
def columns_of(part, parts, width):
    """Return the first and last column of a thread's part, on cache lines."""
    size = (width + 16 * parts - 1) // (16 * parts) * 16
    return min(part * size, width), min((part + 1) * size, width)
