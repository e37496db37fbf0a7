"""What the page shows: what commands print, as `tests/oracle/test_smollm2.py` stores and compares it."""

from pathlib import Path

from byhand.book.words.tables import Table, table


def printed() -> Table:
    """Return each command with what it prints."""
    return table(Path(__file__).with_suffix(".json"))
