"""Locations in the source: finds `path:line` of a definition, or of a call, in the text of one file.

Paths are relative to the repository in a checkout, and to the package's parent folder in an installation. Nothing is
imported, so it is fast and works for code that needs a GPU to import.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).resolve().parents[2]


Code = tuple[str, str]  # a definition: its file, relative to the package, and its dotted name there


class Use(NamedTuple):
    """One application of an equation: a file, its n-th line that has the name by which it is called there, and the
    result's name with its scope."""

    path: str
    called: str
    n: int
    result: str
    scope: str

    @property
    def where(self) -> str:
        """The place, as `path:line`."""
        lines = lines_with(self.path, self.called)
        return f"{shown(self.path)}:{lines[self.n]}" if self.n < len(lines) else shown(self.path)


@cache
def repository() -> Path | None:
    """Return the root of the checkout that this package runs from, or None for an installed package."""
    root = PACKAGE.parents[1]
    return root if PACKAGE.parent.name == "src" and (root / "pyproject.toml").is_file() else None


def shown(path: Path | str) -> str:
    """Return a path for readers: `src/byhand/model.py`, or `byhand/model.py` in an installation."""
    root, path = repository() or PACKAGE.parent, PACKAGE / path
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def inside(path: Path) -> str:
    """Return a path relative to the package; that of a file elsewhere as it is."""
    return (path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else path).as_posix()


def file_of(function: Callable[..., Any]) -> Path:
    """Return the file that defines a function."""
    return Path(function.__code__.co_filename).resolve()


def definition(path: Path | str, name: str) -> str | None:
    """Return `path:line` of a function, class or assignment such as `TinyGPT.loss`; None if the file has none."""
    path = PACKAGE / path
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    begin, end, indent = 0, len(text), ""
    for part in name.split("."):
        found = re.compile(rf"^{indent}(?:(?:def|class) {part}\b|{part}(?:: | = ))", re.MULTILINE).search(
            text, begin, end
        )
        if found is None:
            return None
        begin = found.start()
        after = re.compile(rf"^(?!{indent} |{indent}\)|[ \t]*$)", re.MULTILINE).search(text, found.end(), end)
        end, indent = after.start() if after else end, indent + "    "
    return f"{shown(path)}:{text.count(chr(10), 0, begin) + 1}"


def pointer(given: str) -> str:
    """Return `path:line` of a definition of the package that is written `engine/backward.py:backward`."""
    file, _, name = given.partition(":")
    return str(definition(file, name))


def lines_with(path: Path | str, name: str) -> list[int]:
    """Return the numbers of a file's lines that have a name."""
    path = PACKAGE / path
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [n for n, line in enumerate(lines, 1) if re.search(rf"\b{name}\b", line)]


def first_test(path: Path) -> str | None:
    """Return `path:line` of the first test in a file, if it has one."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    first = next((n for n, line in enumerate(lines, 1) if line.lstrip(" ").startswith("def test")), None)
    return f"{shown(path)}:{first}" if first else None


def sections(path: Path) -> dict[str, str]:
    """Return the text of each headed part of a module's docstring (Equation, Derivative, Shapes, ...)."""
    parts: dict[str, list[str]] = {}
    heading = ""
    _, docstring, _ = path.read_text(encoding="utf-8").split('"""', 2)
    for line in docstring.splitlines()[1:]:
        if line[:1].isalpha() and "  " in line:
            heading, _, line = line.partition("  ")
            parts[heading] = []
        if heading and line.strip():
            parts[heading].append(line.strip())
    return {name: "\n".join(lines) for name, lines in parts.items()}
