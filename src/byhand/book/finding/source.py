"""Locations in the source: finds `path:line` of a definition, or of a call, in the text of one file.

Paths are relative to the repository in a checkout, and to the package's parent folder in an installation. Nothing is
imported, so it is fast and works for code that needs a GPU to import.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).resolve().parents[2]
WIRING = (
    *(f"layers/{part}.py" for part in ("embeddings", "norm", "attention", "mlp", "block", "*")),
    *("model.py", "equations/*.py", "*.py", "runtimes/*.py", "engine/*.py"),
)
"""The files that may apply equations, in reading order."""

UPDATE = "update"  # the role of equations that are applied to arrays, without a name for the result
LEAVES = (ast.Constant, ast.expr_context, ast.operator)  # nodes of a syntax tree without calls in them


Code = tuple[Path, str]  # a definition: its file, and its dotted name there


class Use(NamedTuple):
    """One application of an equation: the n-th in a file, the name by which it is called there, and the result's name
    with its scope."""

    path: Path
    called: str
    n: int
    result: str
    scope: str

    @property
    def where(self) -> str:
        """The place, as `path:line`."""
        lines = sorted(_applied(self.path).get(self.called, {}))
        return f"{shown(self.path)}:{lines[self.n]}" if self.n < len(lines) else shown(self.path)


@cache
def repository() -> Path | None:
    """Return the root of the checkout that this package runs from, or None for an installed package."""
    root = PACKAGE.parents[1]
    return root if PACKAGE.parent.name == "src" and (root / "pyproject.toml").is_file() else None


def shown(path: Path) -> str:
    """Return a path for readers: `src/byhand/model.py`, or `byhand/model.py` in an installation."""
    root = repository() or PACKAGE.parent
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def file_of(function: Callable[..., Any]) -> Path:
    """Return the file that defines a function."""
    return Path(function.__code__.co_filename).resolve()


@cache
def tree(path: Path) -> ast.Module:
    """Return the parsed source of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def definition(path: Path, name: str) -> str | None:
    """Return `path:line` of a function, class or assignment such as `TinyGPT.loss`; None if the file has none."""
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
    return str(definition(PACKAGE / file, name))


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


def first_test(path: Path) -> str | None:
    """Return `path:line` of the first test in a file, if it has one."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    first = next((n for n, line in enumerate(lines, 1) if line.lstrip(" ").startswith("def test")), None)
    return f"{shown(path)}:{first}" if first else None


def uses(name: str, role: str = "") -> tuple[Use, ...]:
    """Return each place of the package that applies an equation: by its name, as an operator, or by its role.

    Places in other equations, except composites, count only if no others exist. A result in a composite is named in
    the scope of the composite's application.
    """
    found: list[Use] = []
    for path in _wiring():
        for called in filter(None, dict.fromkeys((name, role))):
            lines = sorted(_applied(path).get(called, {}).items())
            found += [
                Use(path, called, n, result, scope or _around(path)) for n, (_, (result, scope)) in enumerate(lines)
            ]
    inside = [use for use in found if use.path.parent.name != "equations" or _composes(use.path)]
    return tuple(inside or found)


def _composes(path: Path) -> bool:
    return "import Composite" in path.read_text(encoding="utf-8")


@cache
def _wiring() -> tuple[Path, ...]:
    """Return the files that import equations or name operators, and the equations that apply others."""

    def applies(path: Path) -> bool:
        equation = path.parent.name == "equations"
        marks = (
            ("import Composite", ".forward(") if equation else ("byhand.equations", "_operator(", "rule.equation.")
        )
        text = path.read_text(encoding="utf-8")
        return any(mark in text for mark in marks)

    paths = dict.fromkeys(path for pattern in WIRING for path in sorted(PACKAGE.glob(pattern)))
    return tuple(filter(applies, paths))


@cache
def _around(path: Path) -> str:
    """Return the name under which the model applies a composite: the scope of the results in its file."""
    if path.parent.name != "equations":
        return ""
    return next((use.result for use in uses(path.stem) if use.result), "")


@cache
def _applied(path: Path) -> dict[str, dict[int, tuple[str, str]]]:
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
            if not isinstance(child, LEAVES):
                visit(child, scope)

    visit(tree(path), "")
    return found


def _first_constant(call: ast.Call) -> str:
    """Return a call's first argument if it is a string, else ""."""
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


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
