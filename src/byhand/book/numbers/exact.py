"""Exact: numbers made of fractions and square roots, worked without rounding for as long as that goes.

An `Exact` holds its value as a float and, where it has one, its form: a sum of fractions times roots of square-free
integers, such as 1/2 + 3/4 √2. Exponentials and the like have no such form; what is made of them keeps only the
float. But the logarithm of a fraction knows its fraction (`odds`), which an exponential gives back; sums and integer
multiples of such logarithms know theirs. NumPy arrays of dtype object hold Exacts, so that the equations themselves
compute with them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, total_ordering
from typing import Any

import numpy as np

Form = dict[int, Fraction]  # square-free radicand -> coefficient
MOST_TIMES = 9  # a logarithm counted more often is no power that is easy to work out
LARGEST = 10**12  # a form with longer fractions than this helps nobody on paper


@total_ordering
class Exact:
    """A number: `value` always, `form` where it is made of fractions and roots, `odds` of the logarithm of one."""

    __slots__ = ("form", "odds", "value")

    def __init__(self, value: float, form: Form | None = None, odds: Fraction | None = None) -> None:
        self.value = value
        self.form = form if form is None or _is_short(form) else None
        self.odds: Fraction | None = Fraction(1) if self.form == {} else odds

    @classmethod
    def of(cls, number: Any) -> Exact:
        """Return a number as an Exact; a float is taken for the short fraction or root that it stands for."""
        if isinstance(number, Exact):
            return number
        value = float(number)
        form = _recognised(value)
        return cls(value, form, _odds(value) if form is None else None)

    @classmethod
    def fraction(cls, number: Fraction | int) -> Exact:
        """Return a fraction."""
        return cls(float(number), {1: Fraction(number)} if number else {})

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.form is not None:
            return written(self.form)
        return f"{self.value:.6g}" if self.odds is None else f"ln({self.odds})"

    __repr__ = __str__

    def __add__(self, other: Any) -> Exact:
        other = Exact.of(other)
        odds = None if self.odds is None or other.odds is None else self.odds * other.odds
        return Exact(self.value + other.value, {} if odds == Fraction(1) else _both(_add, self, other), odds)

    def __mul__(self, other: Any) -> Exact:
        other = Exact.of(other)
        if {} in (self.form, other.form):
            return Exact(0.0, {})
        odds = _multiple(self, other) or _multiple(other, self)
        return Exact(self.value * other.value, _both(_multiply, self, other), odds)

    def __neg__(self) -> Exact:
        form = None if self.form is None else {r: -c for r, c in self.form.items()}
        return Exact(-self.value, form, None if self.odds is None else Fraction(1) / self.odds)

    def __sub__(self, other: Any) -> Exact:
        return self + -Exact.of(other)

    def __truediv__(self, other: Any) -> Exact:
        other = Exact.of(other)
        form = _both(lambda a, b: _multiply(a, _inverse(b)), self, other) if other.form else None
        return Exact(self.value / other.value if other.value else math.copysign(math.inf, self.value), form)

    def __pow__(self, exponent: int) -> Exact:
        result = Exact.fraction(1)
        for _ in range(exponent):
            result = result * self
        return result

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Exact:
        return Exact.of(other) - self

    def __rtruediv__(self, other: Any) -> Exact:
        return Exact.of(other) / self

    def __eq__(self, other: object) -> bool:
        return self.value == float(other)  # pyright: ignore[reportArgumentType]

    def __lt__(self, other: Any) -> bool:
        return self.value < float(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __abs__(self) -> Exact:
        return -self if self.value < 0 else self

    # NumPy calls these for np.sqrt, np.exp, ... of an array of objects.

    def sqrt(self) -> Exact:
        """Return the square root: exact for a fraction."""
        form = None
        if self.form is not None and set(self.form) <= {1}:
            form = _root(self.form.get(1, Fraction(0)))
        return Exact(math.sqrt(self.value), form)

    def exp(self) -> Exact:
        """Return the exponential: exact for 0, and for the logarithm of a fraction."""
        return Exact.fraction(self.odds) if self.odds is not None else Exact(math.exp(self.value))

    def log(self) -> Exact:
        """Return the natural logarithm: exact for 1, and of another fraction one that remembers it."""
        if self.form == {1: Fraction(1)}:
            return Exact.fraction(0)
        odds = self.form[1] if self.form is not None and set(self.form) == {1} else None
        return Exact(math.log(self.value), None, odds)

    def tanh(self) -> Exact:
        """Return the hyperbolic tangent: exact for 0 only."""
        return Exact.fraction(0) if self.form == {} else Exact(math.tanh(self.value))

    def erf(self) -> Exact:
        """Return the error function: exact for 0 only."""
        return Exact.fraction(0) if self.form == {} else Exact(math.erf(self.value))


def exact_array(numbers: Any) -> np.ndarray:
    """Return an array of Exacts; floats count as the short fractions that they stand for."""
    array = np.asarray(numbers)
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = Exact.of(array[index])
    return result


def written(form: Form) -> str:
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


def _both(operation: Any, a: Exact, b: Exact) -> Form | None:
    return None if a.form is None or b.form is None else operation(a.form, b.form)


def _add(a: Form, b: Form) -> Form:
    return _without_zeros({r: a.get(r, Fraction(0)) + b.get(r, Fraction(0)) for r in {*a, *b}})


def _multiply(a: Form | None, b: Form | None) -> Form | None:
    if a is None or b is None:
        return None
    result: Form = {}
    for r, c in a.items():
        for s, d in b.items():
            outside, inside = _squares(r * s)
            result[inside] = result.get(inside, Fraction(0)) + c * d * outside
    return _without_zeros(result)


def _multiple(log: Exact, times: Exact) -> Fraction | None:
    """Return the odds of a logarithm that is taken a few times: n ln q = ln q^n."""
    form = times.form
    if log.odds is None or form is None or set(form) != {1} or form[1].denominator > 1 or abs(form[1]) > MOST_TIMES:
        return None
    return log.odds ** int(form[1])


def _inverse(a: Form) -> Form | None:
    """Return 1/a for one term, or for two by the conjugate; more are left to decimals."""
    if len(a) == 1:
        ((r, c),) = a.items()
        return {r: 1 / (c * r)}
    if len(a) == 2:
        (r, c), (s, d) = sorted(a.items())
        norm = c * c * r - d * d * s
        return _without_zeros({r: c / norm, s: -d / norm}) if norm else None
    return None


def _root(number: Fraction) -> Form | None:
    if number < 0 or number.numerator * number.denominator > LARGEST:
        return None
    outside, inside = _squares(number.numerator * number.denominator)
    return _without_zeros({inside: Fraction(outside, number.denominator)})


@cache
def _squares(n: int) -> tuple[int, int]:
    """Return (a, b) with n = a^2 b and b square-free."""
    outside, p = 1, 2
    while p * p <= n:
        while n % (p * p) == 0:
            n //= p * p
            outside *= p
        p += 1
    return outside, n


def _recognised(value: float) -> Form | None:
    """Return the short fraction, the decimal or the root of a short fraction that a float was meant to be."""
    if not math.isfinite(value):
        return None
    for near in (Fraction(value).limit_denominator(10**4), Fraction(f"{value:.8f}")):
        if abs(float(near) - value) <= 2e-15 * abs(value):
            return {1: near} if near else {}
    square = Fraction(value * value).limit_denominator(1000)
    if square and abs(float(square) - value * value) <= 1e-15 * value * value:
        root = _root(square)
        return None if root is None else {r: c if value > 0 else -c for r, c in root.items()}
    return None


def _odds(value: float) -> Fraction | None:
    """Return the short fraction that a float is the logarithm of."""
    if not math.isfinite(value) or abs(value) > 5:
        return None
    near = Fraction(math.exp(value)).limit_denominator(100)
    return near if near > 0 and abs(math.log(near) - value) <= 4e-16 * max(1.0, abs(value)) else None


def _without_zeros(form: Form) -> Form:
    return {r: c for r, c in form.items() if c}


def _is_short(form: Form) -> bool:
    return len(form) <= 4 and all(
        abs(c.numerator) < LARGEST and c.denominator < LARGEST and r < LARGEST for r, c in form.items()
    )
