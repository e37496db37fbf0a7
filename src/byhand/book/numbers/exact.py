"""Exact numbers: computed in fractions, square roots and logarithms of fractions as long as such a form exists.

An `Exact` holds its value as a float and, if it has one, its form (`forms.py`). Exponentials and the like have no
such form; their results keep only the float. But the logarithm of a fraction knows its fraction (`odds`), which an
exponential gives back; sums and integer multiples of such logarithms know theirs. NumPy arrays of dtype object hold
Exacts, so the equations themselves compute with them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import total_ordering
from typing import Any

import numpy as np

from byhand.book.numbers import forms
from byhand.book.numbers.forms import Form

MOST_TIMES = 9  # a higher power of a fraction is not easy to work out by hand


@total_ordering
class Exact:
    """A number: always its `value`; its `form` if it has one; its `odds` if it is the logarithm of a fraction."""

    __slots__ = ("form", "odds", "value")

    def __init__(self, value: float, form: Form | None = None, odds: Fraction | None = None) -> None:
        self.value = value
        self.form = form if form is None or forms.is_short(form) else None
        self.odds: Fraction | None = Fraction(1) if self.form == {} else odds

    @classmethod
    def of(cls, number: Any) -> Exact:
        """Return a number as an Exact; a float becomes the short fraction or root that it stands for."""
        if isinstance(number, Exact):
            return number
        value = float(number)
        form = forms.recognised(value)
        return cls(value, form, _odds(value) if form is None else None)

    @classmethod
    def fraction(cls, number: Fraction | int) -> Exact:
        """Return a fraction."""
        return cls(float(number), {1: Fraction(number)} if number else {})

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.form is not None:
            return forms.text(self.form)
        return f"{self.value:.6g}" if self.odds is None else f"ln({self.odds})"

    __repr__ = __str__

    def __add__(self, other: Any) -> Exact:
        other = Exact.of(other)
        odds = None if self.odds is None or other.odds is None else self.odds * other.odds
        if odds == Fraction(1):
            form = {}
        else:
            form = None if self.form is None or other.form is None else forms.add(self.form, other.form)
        return Exact(self.value + other.value, form, odds)

    def __mul__(self, other: Any) -> Exact:
        other = Exact.of(other)
        if {} in (self.form, other.form):
            return Exact(0.0, {})
        form = None if self.form is None or other.form is None else forms.multiply(self.form, other.form)
        return Exact(self.value * other.value, form, _multiple(self, other) or _multiple(other, self))

    def __neg__(self) -> Exact:
        form = None if self.form is None else {r: -c for r, c in self.form.items()}
        return Exact(-self.value, form, None if self.odds is None else 1 / self.odds)

    def __sub__(self, other: Any) -> Exact:
        return self + -Exact.of(other)

    def __truediv__(self, other: Any) -> Exact:
        other = Exact.of(other)
        inverse = forms.inverse(other.form) if other.form else None
        form = None if self.form is None or inverse is None else forms.multiply(self.form, inverse)
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
            form = forms.root(self.form.get(1, Fraction(0)))
        return Exact(math.sqrt(self.value), form)

    def exp(self) -> Exact:
        """Return the exponential: exact for 0, and for the logarithm of a fraction."""
        return Exact.fraction(self.odds) if self.odds is not None else Exact(math.exp(self.value))

    def log(self) -> Exact:
        """Return the natural logarithm: exact for 1; that of another fraction remembers the fraction."""
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
    """Return an array of Exacts; a float becomes the short fraction or root that it stands for."""
    array = np.asarray(numbers)
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = Exact.of(array[index])
    return result


def _multiple(log: Exact, times: Exact) -> Fraction | None:
    """Return the odds of a small integer multiple of a logarithm: n ln q = ln q^n."""
    form = times.form
    if log.odds is None or form is None or set(form) != {1} or form[1].denominator > 1 or abs(form[1]) > MOST_TIMES:
        return None
    return log.odds ** int(form[1])


def _odds(value: float) -> Fraction | None:
    """Return the short fraction whose logarithm a float is, if any."""
    if not math.isfinite(value) or abs(value) > 5:
        return None
    near = Fraction(math.exp(value)).limit_denominator(100)
    return (
        near
        if near not in (0, 1) and near > 0 and abs(math.log(near) - value) <= 4e-16 * max(1.0, abs(value))
        else None
    )
