"""Where code stands: `path:line` of any definition, read from the source itself and never typed by hand.

Paths are relative to the repository in a checkout, and to the folder that holds the package in an installation.
Nothing is imported to find a line: files are parsed, which is fast and works for code that needs a GPU to import.
"""

import ast
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]


@cache
def repository() -> Path | None:
    """Return the root of the checkout that this package runs from, or None for an installed package."""
    root = PACKAGE.parents[1]
    return root if PACKAGE.parent.name == "src" and (root / "pyproject.toml").is_file() else None


def shown(path: Path) -> str:
    """Return a path as readers see it: `src/byhand/model.py`, or `byhand/model.py` where it is installed."""
    return path.relative_to(repository() or PACKAGE.parent).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """Return the parsed source of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def definition(path: Path, name: str) -> str | None:
    """Return `path:line` of a function, class or assignment such as `forward` or `TinyGPT.loss`, if it is there."""
    if not path.is_file():
        return None
    body: list[ast.stmt] = tree(path).body
    line = 0
    for part in name.split("."):
        found = next((node for node in body if _binds(node, part)), None)
        if found is None:
            return None
        line, body = found.lineno, getattr(found, "body", [])
    return f"{shown(path)}:{line}"


def first_test(path: Path) -> str | None:
    """Return `path:line` of the first test in a file, if there is one."""
    if not path.is_file():
        return None
    tests = re.finditer(r"^ *def test", path.read_text(encoding="utf-8"), re.MULTILINE)
    first = next(tests, None)
    return None if first is None else f"{shown(path)}:{first.string.count(chr(10), 0, first.start()) + 1}"


def uses(path: Path, name: str) -> list[tuple[str, str]]:
    """Return (`path:line`, result's name) for each place in a file that applies the equation `name`.

    An operator of `Tensor` applies `_operator("add")`; all others name the equation itself.
    """
    if not path.is_file():
        return []
    found = _names_used(path).get(name, {})
    return [(f"{shown(path)}:{line}", found[line]) for line in sorted(found)]


@cache
def _names_used(path: Path) -> dict[str, dict[int, str]]:
    """Return, for every name that a file reads or calls, its lines and the result's name where the call gives one."""
    found: dict[str, dict[int, str]] = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, {}).setdefault(node.lineno, "")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name, result = node.func.id, _result_name(node)
            if name == "_operator" and isinstance(node.args[0], ast.Constant):
                name = str(node.args[0].value)
            lines = found.setdefault(name, {})
            lines[node.lineno] = result or lines.get(node.lineno, "")
    return found


def sections(path: Path) -> dict[str, str]:
    """Return the headed parts of a module's docstring (Equation, Derivative, Shapes, ...), as text of their own."""
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


def _binds(node: ast.stmt, name: str) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name == name
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)


def _result_name(call: ast.Call) -> str:
    given = next((k.value for k in call.keywords if k.arg == "name"), None)
    return str(given.value) if isinstance(given, ast.Constant) else ""
