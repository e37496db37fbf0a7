"""Data of the pages, with both languages side by side."""

from pathlib import Path
from typing import Any

from byhand.book.words.tables import table


def read(name: str) -> dict[str, Any]:
    """Return one of the tables of this folder."""
    return table(Path(__file__).with_name(f"{name}.toml"))
