"""The syntax of the source: definitions in it, and every place that applies an equation.

Nothing is imported, so it works for code that needs a GPU to import.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from byhand.book.finding.source import PACKAGE, Use, inside, lines_with

WIRING = (
    *(f"layers/{part}.py" for part in ("embeddings", "norm", "attention", "mlp", "block", "*")),
    *("model.py", "equations/*.py", "*.py", "runtimes/*.py", "engine/*.py"),
)
"""The files that may apply equations, in reading order."""

UPDATE = "update"  # the role of equations that are applied to arrays, without a name for the result


@cache
def tree(path: Path) -> ast.Module:
    """Return the parsed source of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def statement(path: Path, name: str) -> Any:
    """Return the syntax tree of such a definition; None if the file has none."""
    found: Any = tree(path) if path.is_file() else None
    for part in name.split("."):
        found = next((node for node in getattr(found, "body", []) if part in _names_of(node)), None)
    return found


def enclosing(path: Path, line: int) -> str:
    """Return the dotted name of the innermost definition that holds a line, as `definition` takes it; "" if none."""
    names: list[str] = []
    body: list[ast.stmt] = tree(path).body if path.suffix == ".py" else []
    while node := next((n for n in body if n.lineno <= line <= (n.end_lineno or 0) and _names_of(n)), None):
        names.append(_names_of(node)[0])
        inner = node.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
        body = [n for n in inner if isinstance(n, ast.FunctionDef) or isinstance(node, ast.ClassDef)]  # no variables
    return ".".join(names)


def uses(name: str, role: str = "") -> tuple[Use, ...]:
    """Return each place of the package that applies an equation: by its name, as an operator, or by its role.

    Places in other equations, except composites, count only if no others exist. A result in a composite is named in
    the scope of the composite's application.
    """
    found: list[Use] = []
    paths = (path for pattern in WIRING for path in sorted(PACKAGE.glob(pattern)))
    for path in dict.fromkeys(paths):
        for called in filter(None, dict.fromkeys((name, role))):
            places = lines_with(path, called)
            found += [
                Use(inside(path), called, places.index(line), result, scope or _around(path))
                for line, (result, scope) in sorted(applied(path).get(called, {}).items())
            ]
    outside = [use for use in found if not use.path.startswith("equations/") or _composes(PACKAGE / use.path)]
    return tuple(outside or found)


def _composes(path: Path) -> bool:
    return "import Composite" in path.read_text(encoding="utf-8")


@cache
def _around(path: Path) -> str:
    """Return the name under which the model applies a composite: the scope of the results in its file."""
    if path.parent.name != "equations":
        return ""
    return next((use.result for use in uses(path.stem) if use.result), "")


@cache
def applied(path: Path) -> dict[str, dict[int, tuple[str, str]]]:
    """Return, for every equation that a file applies: by line, the result's name and its scope.

    `_operator("add")` applies `add`; `activation(x, name="act")` applies the equation chosen for that role.
    """
    found: dict[str, dict[int, tuple[str, str]]] = {}
    imported: set[str] = set()

    def add(name: str, node: ast.expr, result: str, scope: str) -> None:
        lines = found.setdefault(name, {})
        lines[node.lineno] = (result or lines.get(node.lineno, ("", ""))[0], scope)

    def visit(node: ast.AST, scope: str) -> None:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("byhand.equations"):
            imported.update(alias.name for alias in node.names)
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id in imported:
                add(node.id, node, "", scope)
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called, result = node.func.id, _result_name(node)
            if called == "_operator":
                add(_first_constant(node), node, result, scope)
            elif result or called in imported or called == UPDATE:
                add(called, node, result, scope)
        if isinstance(node, ast.With):
            call = node.items[0].context_expr
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "scope":
                scope = _first_constant(call)
        for child in ast.iter_child_nodes(node):
            visit(child, scope)

    visit(tree(path), "")
    return found


def _first_constant(call: ast.Call) -> str:
    """Return a call's first argument if it is a string, else ""."""
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _names_of(node: ast.stmt) -> list[str]:
    """Return the names that a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = (
        node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    )
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _result_name(call: ast.Call) -> str:
    given = next((k.value for k in call.keywords if k.arg == "name"), None)
    return str(given.value) if isinstance(given, ast.Constant) else ""
