"""Data of the pages, with both languages side by side."""

from pathlib import Path
from typing import Any

from byhand.book.words.tables import PAIR, table

KNOWLEDGE = {"arithmetic": PAIR, "python": PAIR, "framework": PAIR}
STOP = {
    "needs": str, "minutes": int, "outcome": PAIR, "command": str, "earlier": [str], "sheet": str, "pencil": int,
    "made_by": str,
}  # fmt: skip
ROWS = {"definitions": PAIR, "references": [str], "steps": [(str, str, str, [str])], "path": KNOWLEDGE | STOP}


def read(name: str) -> dict[str, Any]:
    """Return one of the tables of this folder."""
    return table(Path(__file__).with_name(f"{name}.toml"), ROWS[name])
