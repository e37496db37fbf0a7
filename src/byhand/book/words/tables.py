"""Tables of words and numbers: TOML or JSON files beside the modules that use them, both languages side by side."""

import json
import tomllib
from pathlib import Path
from typing import Any

from byhand.errors import ByhandError


class Table(dict[str, Any]):
    """What a file says; ByhandError names the file that lacks a key."""

    def __init__(self, path: Path, says: dict[str, Any]) -> None:
        super().__init__(says)
        self.path = path

    def __missing__(self, key: str) -> Any:
        raise ByhandError(f"{self.path} lacks {key!r}. Restore the file.")


def table(path: Path) -> Table:
    """Return the table in this file of the package; ByhandError if it is damaged."""
    try:
        text = path.read_text(encoding="utf-8")
        return Table(path, json.loads(text) if path.suffix == ".json" else tomllib.loads(text))
    except (OSError, ValueError, TypeError) as error:
        raise ByhandError(f"{path} is no table: {error}. Restore the file.") from None
