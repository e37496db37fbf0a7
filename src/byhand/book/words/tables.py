"""Tables of words: TOML files beside the modules that use them, with both languages side by side."""

import tomllib
from pathlib import Path
from typing import Any


def table(path: Path) -> dict[str, Any]:
    """Return the table in this file of the package."""
    return tomllib.loads(path.read_text(encoding="utf-8"))
