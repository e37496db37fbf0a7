"""Forms: sums of fractions times roots of square-free integers, such as 1/2 + 3/4 √2, and their arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

Form = dict[int, Fraction]  # square-free radicand -> coefficient
LARGEST = 10**12  # longer fractions are no easier to read on paper than a decimal
MOST_TERMS = 4


def text(form: Form) -> str:
    """Return a form as people write it: `1/2 + 3√2/4`."""
    text = ""
    for radicand, coefficient in sorted(form.items()):
        size = _term(abs(coefficient), radicand)
        if text:
            text += f" − {size}" if coefficient < 0 else f" + {size}"
        else:
            text = f"−{size}" if coefficient < 0 else size
    return text or "0"


def _term(coefficient: Fraction, radicand: int) -> str:
    if radicand == 1:
        return str(coefficient)
    above = f"√{radicand}" if coefficient.numerator == 1 else f"{coefficient.numerator}√{radicand}"
    return above if coefficient.denominator == 1 else f"{above}/{coefficient.denominator}"


def add(a: Form, b: Form) -> Form:
    """Return a + b."""
    return _without_zeros({r: a.get(r, Fraction(0)) + b.get(r, Fraction(0)) for r in {*a, *b}})


def multiply(a: Form, b: Form) -> Form:
    """Return a b."""
    result: Form = {}
    for r, c in a.items():
        for s, d in b.items():
            outside, inside = _squares(r * s)
            result[inside] = result.get(inside, Fraction(0)) + c * d * outside
    return _without_zeros(result)


def inverse(a: Form) -> Form | None:
    """Return 1/a for one term, or for two by the conjugate; None for more terms."""
    if len(a) == 1:
        ((r, c),) = a.items()
        return {r: 1 / (c * r)}
    if len(a) == 2:
        (r, c), (s, d) = sorted(a.items())
        norm = c * c * r - d * d * s
        return _without_zeros({r: c / norm, s: -d / norm}) if norm else None
    return None


def root(number: Fraction) -> Form | None:
    """Return the square root of a fraction; None for a negative or a long one."""
    if number < 0 or number.numerator * number.denominator > LARGEST:
        return None
    outside, inside = _squares(number.numerator * number.denominator)
    return _without_zeros({inside: Fraction(outside, number.denominator)})


def recognised(value: float) -> Form | None:
    """Return the short fraction, the decimal or the root of a short fraction that a float stands for, if any."""
    if not math.isfinite(value):
        return None
    for near in (Fraction(value).limit_denominator(10**4), Fraction(f"{value:.8f}")):
        if abs(float(near) - value) <= 2e-15 * abs(value):
            return {1: near} if near else {}
    square = Fraction(value * value).limit_denominator(1000)
    if square and abs(float(square) - value * value) <= 1e-15 * value * value:
        form = root(square)
        return None if form is None else {r: c if value > 0 else -c for r, c in form.items()}
    return None


def is_short(form: Form) -> bool:
    """Return whether a form is easier to read than a decimal."""
    return len(form) <= MOST_TERMS and all(
        abs(c.numerator) < LARGEST and c.denominator < LARGEST and r < LARGEST for r, c in form.items()
    )


@cache
def _squares(n: int) -> tuple[int, int]:
    """Return (a, b) with n = a² b and b square-free."""
    outside, p = 1, 2
    while p * p <= n:
        while n % (p * p) == 0:
            n //= p * p
            outside *= p
        p += 1
    return outside, n


def _without_zeros(form: Form) -> Form:
    return {r: c for r, c in form.items() if c}
