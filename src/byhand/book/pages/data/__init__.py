"""Data of the pages, with both languages side by side."""

import tomllib
from importlib.resources import files
from typing import Any


def read(name: str) -> dict[str, Any]:
    """Return one of the tables of this folder."""
    return tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
