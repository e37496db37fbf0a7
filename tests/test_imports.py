"""No circle of imports anywhere in the package: among modules, or among the rooms of a package.

Every import counts, whatever it is for: those for types alone, those within functions, and those of a package that
imports all its files. Importing a module also runs its packages' `__init__`; that alone makes no circle.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import byhand
from where.syntax import tree

ROOT = Path(byhand.__file__).parent
WALKS = {"walk_packages", "iter_modules"}

# Known cycles among rooms, to be removed: delete the line of a removed one, and add none.
KNOWN = {
    frozenset(f"byhand.book.{room}" for room in ("entries", "finding", "lessons", "numbers", "practice")),
}


@cache
def modules() -> dict[str, Path]:
    """Return the package's modules by dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = ("byhand", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str) -> Iterator[str]:
    """Yield the modules of the package that a module names in an import, wherever it stands."""
    for node in ast.walk(tree(modules()[name])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{name}: imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from [target for target in (whole, node.module) if target in modules()][:1]
        elif isinstance(node, ast.Call) and _called(node) in WALKS:
            yield from (other for other in modules() if other.startswith(f"{name}."))
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            yield from (
                word.value for word in node.args if isinstance(word, ast.Constant) and word.value in modules()
            )


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


@cache
def graph() -> dict[str, frozenset[str]]:
    """Return what each module imports."""
    return {name: frozenset(imported(name)) - {name} for name in modules()}


def circles(edges: dict[str, frozenset[str]]) -> set[frozenset[str]]:
    """Return the strongly connected components of more than one node (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            start = stack.index(node)
            component = frozenset(stack[start:])
            del stack[start:]
            if len(component) > 1:
                found.add(component)

    for node in edges:
        if node not in number:
            visit(node)
    return found


def rooms(package: str) -> dict[str, frozenset[str]]:
    """Return what each file and folder of a package imports of its siblings."""
    depth = package.count(".") + 2
    edges: dict[str, set[str]] = {}
    for name, targets in graph().items():
        if not name.startswith(f"{package}."):
            continue
        here = ".".join(name.split(".")[:depth])
        there = (".".join(t.split(".")[:depth]) for t in targets if t.startswith(f"{package}."))
        edges.setdefault(here, set()).update(t for t in there if t != here)
    return {room: frozenset(others) for room, others in edges.items()}


def way_round(circle: frozenset[str], edges: dict[str, frozenset[str]]) -> str:
    """Return a shortest way round: who imports whom."""
    ways = [[start] for start in sorted(circle)]
    for way in ways:
        for other in sorted(edges[way[-1]] & circle):
            if other == way[0]:
                return " imports ".join([*way, other])
            if other not in way:
                ways.append([*way, other])
    raise AssertionError(circle)


def test_there_is_no_circle_among_modules():
    found = [way_round(circle, graph()) for circle in circles(graph())]
    assert not found, "\n".join(found)


def test_there_is_no_circle_among_rooms():
    packages = {name.rpartition(".")[0] for name in modules()} - {""}
    found = {circle for package in packages for circle in circles(rooms(package))}
    assert found == KNOWN


def test_a_circle_is_found_however_it_is_hidden():
    edges = {name: frozenset(to) for name, to in {"a": "b", "b": "c", "c": "ad", "d": "", "e": "a"}.items()}
    assert circles(edges) == {frozenset("abc")}
    assert way_round(frozenset("abc"), edges) == "a imports b imports c imports a"
