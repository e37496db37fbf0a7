r"""ReLU: negative values become zero.

Equation    y = max(x, 0)
Derivative  d_x = d_y where x > 0, else 0 (0 at x = 0, by convention)
Shapes      any -> the same
Source      Nair & Hinton 2010, Rectified Linear Units Improve Restricted Boltzmann Machines
"""

from byhand.engine.arrays import namespace
from byhand.engine.equation import Equation, Symbol, per_element
from byhand.engine.terms import cotangent_sum, element, elements, function


def forward(x):
    """Clamp at zero; NaN stays NaN, so that errors upstream stay visible."""
    xp = namespace(x)
    return xp.where(x <= 0, xp.zeros_like(x), x), (x,)


def vjp(saved, d_y):
    """Pass the cotangent where x was positive."""
    (x,) = saved
    xp = namespace(d_y)
    return (xp.where(x > 0, d_y, xp.zeros_like(d_y)),)


def terms(index, inputs, result):
    """The number itself, or zero."""
    return function("positive", element(inputs, 0, index, "x"))


flops = per_element(1, 1)  # one comparison each, forward and backward


def gradient_terms(saved, d_results, slot, index):
    """The cotangent times the slope, 1 or 0."""
    d, x = elements((*d_results, *saved), index, "∂y", "x")
    return cotangent_sum([(d, function("step", x))])


relu = Equation.of(
    __name__,
    title="ReLU",
    latex=r"y = \max(x, 0)",
    derivative=r"\partial x = \partial y \cdot [x > 0]",
    inputs=(Symbol("x", "x", "(...)", "any array"),),
    result=Symbol("y", "y", "(...)", "rectified array"),
    role="activation",
)
