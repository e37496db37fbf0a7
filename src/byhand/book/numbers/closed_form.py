r"""Closed forms: numbers as readers write them (`3/4`, `1/(1+exp(-1))`, `log(8/5)/2`), to a float and to LaTeX.

The language is Python's arithmetic on integers and decimals, with sqrt, exp, log, tanh, erf, cos, sin, pi, inf. Input
is bounded before it is parsed, and never evaluated as code; a fraction that grows long becomes a float. Nested lists
of closed forms become arrays and matrices.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.book.entries.contract import Numbers
from byhand.errors import ByhandError

LONGEST = 200  # characters; a number on paper is shorter
DEEPEST = 20  # parentheses inside each other
MOST_SIGNS = 3  # in a row
LARGEST_POWER = 100
LONGEST_FRACTION = 2000  # bits of its numerator or denominator; a float holds up to 1074
FUNCTIONS = {name: getattr(math, name) for name in ("sqrt", "exp", "log", "tanh", "erf", "cos", "sin")}
CONSTANTS = {"pi": math.pi, "inf": math.inf}
HOW = "Write it like 3/4, 0.75, sqrt(2) or exp(-1)."
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_TOKEN = re.compile(
    rf"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{{1,4}})?(?!\w)|{'|'.join((*FUNCTIONS, *CONSTANTS))}|\*\*|[-+*/()]|[ \t]+"
)
_SIGNS = re.compile(rf"(?:[-+]\s*){{{MOST_SIGNS + 1},}}")


def value(written: str | int | float) -> float:
    """Return a closed form's value; ByhandError if it is not of this language, or has no value."""
    tree = _parse(str(written))
    try:
        number = float(_number(tree))
    except (ZeroDivisionError, OverflowError, ValueError):
        number = math.nan
    except TypeError:
        raise ByhandError(f"{str(written)!r} is not a number. {HOW}") from None
    if math.isnan(number):
        raise ByhandError(f"{str(written)!r} has no value. {HOW}")
    return number


def latex(written: str | int | float) -> str:
    r"""Return the number in LaTeX: `1/(1+exp(-1))` becomes `\frac{1}{1 + e^{-1}}`."""
    return _latex(_parse(str(written)), 0)


def array(numbers: Numbers, integers: bool = False) -> np.ndarray:
    """Return nested closed forms as an array."""
    return np.asarray(each(value, numbers), dtype=np.int64 if integers else np.float64)


def each(function: Callable[[Any], Any], numbers: Numbers) -> Any:
    """Apply a function to every closed form of nested lists."""
    return [each(function, n) for n in numbers] if isinstance(numbers, list) else function(numbers)


def matrix(numbers: Numbers) -> str:
    r"""Return numbers as LaTeX: a matrix for nested lists (leading axes of length 1 dropped), or one number."""
    while isinstance(numbers, list) and len(numbers) == 1 and isinstance(numbers[0], list):
        numbers = numbers[0]
    if not isinstance(numbers, list):
        return latex(numbers)
    rows = numbers if isinstance(numbers[0], list) else [numbers]
    if isinstance(rows[0][0], list):
        return r",\; ".join(matrix(row) for row in rows)
    return r"\begin{bmatrix}" + r" \\ ".join(" & ".join(latex(n) for n in row) for row in rows) + r"\end{bmatrix}"


def several(numbers: Numbers) -> tuple[Numbers, ...]:
    """Return one result, or several, as a tuple."""
    return numbers if isinstance(numbers, tuple) else (numbers,)


def _parse(written: str) -> ast.expr:
    """Return a closed form's syntax tree; long, deep or foreign input raises ByhandError and is never parsed."""
    if len(written) > LONGEST:
        raise ByhandError(f"{written[:20]!r}… has {len(written):,} characters, too many for a number. {HOW}")
    at = depth = 0
    while at < len(written):
        token = _TOKEN.match(written, at)
        depth += {"(": 1, ")": -1}.get(written[at], 0)
        if token is None or depth > DEEPEST:
            raise ByhandError(f"{written!r} is not a number. {HOW}")
        at = token.end()
    try:
        if _SIGNS.search(written):
            raise ValueError
        return ast.parse(written.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise ByhandError(f"{written!r} is not a number. {HOW}") from None


def _number(node: ast.expr) -> Fraction | float:
    """Return a node's value, in fractions as long as they stay short; TypeError for anything but a number."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Fraction(str(number))
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(inner)
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return _short(_power(_number(left), _number(right)))
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _OPERATORS:
            return _short(_OPERATORS[type(op)](_number(left), _number(right)))
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in FUNCTIONS:
            return FUNCTIONS[name](_number(inner))
    raise TypeError


def _power(base: Fraction | float, exponent: Fraction | float) -> Fraction | float:
    if abs(exponent) > LARGEST_POWER:
        raise OverflowError
    if isinstance(base, Fraction) and _bits(base) * abs(exponent) > LONGEST_FRACTION:
        base = float(base)
    power = base**exponent
    if isinstance(power, complex):
        raise ValueError
    return power


def _short(number: Fraction | float) -> Fraction | float:
    """Return a long fraction as a float; OverflowError if it is too large for one."""
    return float(number) if isinstance(number, Fraction) and _bits(number) > LONGEST_FRACTION else number


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _latex(node: ast.expr, tightness: int) -> str:
    """Write a node, in parentheses if it binds less tightly than its surroundings (sum 1, product 2, power 3)."""
    match node:
        case ast.Constant(value=number):
            return str(number)
        case ast.Name(id=name):
            return rf"\{'infty' if name == 'inf' else name}"
        case ast.UnaryOp(operand=inner):
            return _wrap(f"-{_latex(inner, 2)}", tightness > 1)
        case ast.BinOp(op=ast.Div(), left=ast.UnaryOp(operand=left), right=right):
            return _wrap(rf"-\frac{{{_latex(left, 0)}}}{{{_latex(right, 0)}}}", tightness > 1)
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            return rf"\frac{{{_latex(left, 0)}}}{{{_latex(right, 0)}}}"
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return f"{_latex(left, 4)}^{{{_latex(right, 0)}}}"
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return _wrap(rf"{_latex(left, 2)} \cdot {_latex(right, 2)}", tightness > 2)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _wrap(f"{_latex(left, 1)} + {_latex(right, 1)}", tightness > 1)
        case ast.BinOp(op=ast.Sub(), left=left, right=right):
            return _wrap(f"{_latex(left, 1)} - {_latex(right, 2)}", tightness > 1)
        case ast.Call(func=ast.Name(id="sqrt"), args=[inner]):
            return rf"\sqrt{{{_latex(inner, 0)}}}"
        case ast.Call(func=ast.Name(id="exp"), args=[inner]):
            return f"e^{{{_latex(inner, 0)}}}"
        case ast.Call(func=ast.Name(id="erf"), args=[inner]):
            return rf"\mathrm{{erf}}\left({_latex(inner, 0)}\right)"
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            alone, name = isinstance(inner, ast.Constant), "ln" if name == "log" else name
            return rf"\{name} {_latex(inner, 4)}" if alone else rf"\{name}\left({_latex(inner, 0)}\right)"
    raise ByhandError(f"{ast.unparse(node)!r} is not a number. {HOW}")


def _wrap(text: str, needed: bool) -> str:
    return rf"\left({text}\right)" if needed else text
