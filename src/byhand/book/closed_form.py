r"""Closed forms: numbers as readers write them (`3/4`, `1/(1+exp(-1))`, `log(8/5)/2`), to a float and to LaTeX.

The language is Python's arithmetic on integers and decimals, with sqrt, exp, log, tanh, pi and inf; it is parsed and
never evaluated as code.
"""

import ast
import math
import operator
from fractions import Fraction

from byhand.errors import ByhandError

FUNCTIONS = {"sqrt": math.sqrt, "exp": math.exp, "log": math.log, "tanh": math.tanh}
CONSTANTS = {"pi": math.pi, "inf": math.inf}
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow}


def value(written: str | int | float) -> float:
    """Return the number; ByhandError if it is not written in this language."""
    return float(_number(_parse(written)))


def latex(written: str | int | float) -> str:
    r"""Return the number in LaTeX: `1/(1+exp(-1))` becomes `\frac{1}{1 + e^{-1}}`."""
    return _latex(_parse(written), 0)


def _parse(written: str | int | float) -> ast.expr:
    try:
        return ast.parse(str(written).strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise ByhandError(f"{written!r} is no number. Write it like 3/4, 0.75, sqrt(2) or exp(-1).") from None


def _number(node: ast.expr) -> Fraction | float:
    """Work exactly with fractions for as long as that goes."""
    try:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return Fraction(str(number))
            case ast.Name(id=name) if name in CONSTANTS:
                return CONSTANTS[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -_number(inner)
            case ast.BinOp(op=ast.Div(), left=left, right=right):
                return _number(left) / _number(right)
            case ast.BinOp(op=ast.Pow(), left=left, right=right):
                return _power(_number(left), _number(right))
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](_number(left), _number(right))
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in FUNCTIONS:
                return FUNCTIONS[name](_number(inner))
    except (ZeroDivisionError, OverflowError, ValueError):
        raise ByhandError(f"{ast.unparse(node)} has no value.") from None
    raise ByhandError(f"{ast.unparse(node)!r} is no number. Write it like 3/4, 0.75, sqrt(2) or exp(-1).")


def _power(base: Fraction | float, exponent: Fraction | float) -> Fraction | float:
    if abs(exponent) > 100:
        raise OverflowError
    power = base**exponent
    if isinstance(power, complex):
        raise ValueError
    return power


def _latex(node: ast.expr, tightness: int) -> str:
    """Write a node; parentheses where it binds less tightly (sum 1, product 2, power 3) than what surrounds it."""
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
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            return (
                rf"\{name} {_latex(inner, 4)}"
                if isinstance(inner, ast.Constant)
                else (rf"\{name}\left({_latex(inner, 0)}\right)")
            )
    raise ByhandError(f"{ast.unparse(node)!r} is no number. Write it like 3/4, 0.75, sqrt(2) or exp(-1).")


def _wrap(text: str, needed: bool) -> str:
    return rf"\left({text}\right)" if needed else text
