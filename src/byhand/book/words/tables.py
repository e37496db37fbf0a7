"""Tables written as text: of terms, settings, places, and the questions that lead to them."""

from __future__ import annotations

from collections.abc import Iterator


def rows(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the heading above each row, and the row's lines: the first, and the indented ones below it.

    `# Heading` stands alone; a line that is indented twice continues the line above it.
    """
    heading = ""
    for row in table.strip().replace("\n        ", " ").replace("\n    ", "\0").split("\n"):
        if row.startswith("# "):
            heading = row.removeprefix("# ")
        else:
            yield heading, row.split("\0")


def cells(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the heading above each row, and the row's cells, which ` | ` separates."""
    for heading, lines in rows(table):
        yield heading, " ".join(lines).split(" | ")
