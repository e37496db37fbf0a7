r"""GELU, exact: each number times the probability that a standard normal variable is smaller.

Equation    y = x/2 * (1 + erf(u)),   u = x / sqrt(2)
Derivative  d_x = d_y * ((1 + erf u)/2 + x exp(-u^2) / sqrt(2 pi))
Shapes      any -> the same
Source      Hendrycks & Gimpel 2016, arXiv:1606.08415
"""

import math

from byhand.engine.arrays import erf, namespace
from byhand.engine.equation import TRANSCENDENTAL, Equation, Symbol, per_element
from byhand.engine.terms import element, elements, function, number, product, ratio, total


def forward(x):
    """Keep the error function: the derivative needs it again."""
    bell = erf(x * math.sqrt(0.5))
    return 0.5 * x * (1.0 + bell), (x, bell)


def vjp(saved, d_y):
    """Product rule on x and the probability (1 + erf u)/2, whose slope is the normal density."""
    x, bell = saved
    density = namespace(x).exp(-0.5 * (x * x)) / math.sqrt(2 * math.pi)
    return (d_y * (0.5 + 0.5 * bell + x * density),)


def terms(index, inputs, result):
    """Half of x, times one plus the error function."""
    x = element(inputs, 0, index, "x")
    return product((number(0.5), x, total((number(1), saved_terms(1, index, inputs)))))


def saved_terms(which, index, inputs):
    """erf u."""
    return function("erf", ratio(element(inputs, 0, index, "x"), function("sqrt", number(2)), "u"))


flops = per_element(4 + 2 * TRANSCENDENTAL, 8 + TRANSCENDENTAL)  # erf: an exponential and a long polynomial


def gradient_terms(saved, d_results, slot, index):
    """d ((1 + erf u)/2 + x exp(-x^2/2) / sqrt(2 pi))."""
    d, x, bell = elements((*d_results, *saved), index, "∂y", "x", "erf")
    gate = ratio(total((number(1), bell)), number(2))
    power = function("exp", function("negative", ratio(function("square", x), number(2))))
    density = ratio(power, function("sqrt", product((number(2), number(math.pi, "π")))))
    return product((d, total((gate, product((x, density))))))


gelu_exact = Equation.of(
    __name__,
    title="GELU (exact form)",
    latex=r"y = \tfrac{x}{2}\left(1 + \mathrm{erf}(u)\right), \quad u = \frac{x}{\sqrt{2}}",
    derivative=r"\partial x = \partial y \left( \tfrac{1 + \mathrm{erf}(u)}{2}"
    r" + x\,\frac{\exp(-u^2)}{\sqrt{2 \pi}} \right)",
    inputs=(Symbol("x", "x", "(...)", "any array"),),
    result=Symbol("y", "y", "(...)", "gated array"),
    role="activation",
)
