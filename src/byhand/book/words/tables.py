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
        raise ByhandError(f"{self.path} lacks {key!r}. Restore the file.")


PAIR = (str, str)  # a text in both languages, or a file and a name in it


def table(path: Path, row: Any = object) -> Table:
    """Return the table in this file of the package; ByhandError if it is damaged, or a row does not fit `row`."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            return Table(path, json.loads(text))
        import tomllib  # slow to import, and `where` reads JSON alone

        return require_rows(path, Table(path, tomllib.loads(text)), row)
    except (OSError, ValueError, TypeError) as error:
        raise ByhandError(f"{path} is not a table: {error}. Restore the file.") from None


def require_rows(path: Path, rows: Table, row: Any) -> Table:
    """Return these rows; ByhandError names the first that does not fit."""
    for name, value in rows.items():
        if not fits(value, row):
            raise ByhandError(f"{path}: the row {name!r} differs in form from the others. Restore the file.")
    return rows


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of a kind.

    kind  a type; {kind, kind}: either; [kind]: a list of any length; (kind, kind): a list of two;
          {key: kind}: a table with some of these keys; {str: kind}: a table with any keys
    """
    match kind:
        case list():
            return isinstance(value, list) and all(fits(item, kind[0]) for item in value)
        case tuple():
            return isinstance(value, list) and len(value) == len(kind) and all(map(fits, value, kind))
        case set():
            return any(fits(value, one) for one in kind)
        case dict():
            if not isinstance(value, dict) or not (str in kind or value.keys() <= kind.keys()):
                return False
            return all(fits(item, kind[key if key in kind else str]) for key, item in value.items())
        case _:
            return isinstance(value, kind)
