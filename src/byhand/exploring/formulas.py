"""What stands beside a pass's numbers: each equation's formulas, symbols, lines, test and page."""

from __future__ import annotations

import inspect
import re
from dataclasses import asdict
from functools import cache
from typing import Any

from math_core import LatexToMathML

from byhand.book.finding import source
from byhand.book.finding.equations import of_equations
from byhand.engine.equation import Equation, registry

BETWEEN = re.compile(r",\s*\\q?quad\s*")  # formulas of a line
CONVERTER = LatexToMathML(fancy_error=False)


def mathml(latex: str) -> str:
    """Return each formula of a line as an element of its own, so that lines break between them."""
    return "".join(
        CONVERTER.convert_with_local_state(each, displaystyle=True) for each in BETWEEN.split(latex) if each
    )


@cache
def formulas(name: str) -> dict[str, Any]:
    """Return an equation's formulas as MathML, its symbols, and where it is in the code, the tests and the book."""
    equation, found = registry[name], of_equations()[name]
    assert isinstance(equation, Equation)  # a pass has no composites
    symbols = {s.name: row for s, row in zip(equation.inputs, found.symbols, strict=False)}
    return {
        "title": asdict(found.title),
        "forward": mathml(found.latex),
        "derivative": mathml(found.latex_derivative),
        "file": source.shown(source.file_of(equation.forward)),
        "forward_lines": _lines(equation.forward),
        "derivative_lines": _lines(equation.vjp),
        "test": found.tests[0],
        "page": f"{found.pages}/{name}.md",
        "inputs": [_symbol(s, symbols[s.name].meaning) for s in equation.inputs],
        "results": [_symbol(s, found.symbols[-1].meaning) for s in equation.results],
    }


def _symbol(symbol: Any, meaning: Any) -> dict[str, Any]:
    return {
        "name": symbol.name,
        "symbol": CONVERTER.convert_with_local_state(symbol.latex, displaystyle=False),
        "meaning": asdict(meaning),
    }


def _lines(function: Any) -> dict[str, Any]:
    text, line = inspect.getsourcelines(function)
    return {"line": line, "text": [each.rstrip() for each in text]}
