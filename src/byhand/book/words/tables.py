"""Tables of words and numbers: TOML or JSON files beside the modules that use them, both languages side by side."""

import json
from pathlib import Path
from typing import Any

from byhand.errors import ByhandError


class Table(dict[str, Any]):
    """The content of a file, or a table in it; for a missing key, ByhandError names the file."""

    def __init__(self, path: Path, says: dict[str, Any]) -> None:
        inside = dict(says).items()
        super().__init__((key, Table(path, part) if isinstance(part, dict) else part) for key, part in inside)
        self.path = path

    def __missing__(self, key: str) -> Any:
        raise ByhandError(f"{self.path} lacks {key!r}. Add it.")


def table(path: Path) -> Table:
    """Return the table in this file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return Table(path, json.loads(text))
    import tomllib  # slow to import, and `where` reads JSON alone

    return Table(path, tomllib.loads(text))
