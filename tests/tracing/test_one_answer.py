"""What a number is made of is decided in one room: only `tracing/` asks an equation for its arithmetic.

An entry of the book asks too, for its mistakes: the arithmetic of another equation, or of another element.
"""

import ast
from pathlib import Path

import byhand

ROOT = Path(byhand.__file__).parent
ASKS = {"terms", "gradient_term", "gradient_terms", "beside"}  # methods and fields of equations and their steps
MAY = ("engine/", "equations/", "tracing/", "book/entries/")


def asking(text: str) -> list[str]:
    """Return the calls in a text that ask for arithmetic."""
    called = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return [ast.unparse(f) for f in called if (getattr(f, "attr", "") or getattr(f, "id", "")) in ASKS]


def test_only_tracing_asks_an_equation_for_its_arithmetic():
    paths = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
    found = {name: asking(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    others = {name: calls for name, calls in found.items() if calls and not name.startswith(MAY)}
    assert not others, "ask for an `Answer` instead"
    assert {name for name in found if found[name] and name.startswith("tracing/")}, "nothing is found at all"
