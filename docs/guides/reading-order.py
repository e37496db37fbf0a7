"""What the page asks: the lines at which a debugger stops."""

import ast

from byhand.book.finding import source
from pages.blocks.markdown import located
from where import syntax


def first_lines(definitions: tuple[str, ...]) -> list[str]:
    """Return `path:line` of the first line of each definition that runs once, for a debugger to stop at."""
    found = []
    for path, name in map(located, definitions):
        first = next(statement for statement in syntax.statement(path, name).body if _runs_once(statement))
        found.append(f"{source.shown(path)}:{first.lineno}")
    return found


def _runs_once(statement: ast.stmt) -> bool:
    """Say whether a debugger stops at the statement, and once only: it is no docstring, and nothing in it repeats."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return False
    repeats = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return not any(isinstance(node, repeats) for node in ast.walk(statement))
