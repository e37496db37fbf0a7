r"""Squared ReLU: negative values become zero, positive ones their square.

Equation    y = max(x, 0)^2
Derivative  d_x = d_y * 2 * max(x, 0)
Shapes      any -> the same
Source      So et al. 2021, arXiv:2109.08668
"""

from byhand.engine.arrays import namespace
from byhand.engine.equation import Equation, Symbol, per_element
from byhand.engine.terms import element, elements, function, number, product


def forward(x):
    """Keep the positive part: it is half of the slope. NaN stays NaN."""
    xp = namespace(x)
    positive = xp.where(x <= 0, xp.zeros_like(x), x)
    return positive * positive, (positive,)


def vjp(saved, d_y):
    """Twice the positive part; unlike ReLU's slope it is continuous at zero."""
    (positive,) = saved
    return (2.0 * d_y * positive,)


def terms(index, inputs, result):
    """The square of the number, or zero."""
    return function("square", saved_terms(0, index, inputs))


def saved_terms(which, index, inputs):
    """max(x, 0)."""
    return function("positive", element(inputs, 0, index, "x"))


flops = per_element(2, 2)  # comparison and square; backward two products


def gradient_terms(saved, d_results, slot, index):
    """d 2 max(x, 0)."""
    d, positive = elements((*d_results, *saved), index, "∂y", "max(x, 0)")
    return product((d, number(2), positive))


relu_squared = Equation.of(
    __name__,
    title="Squared ReLU",
    latex=r"y = \max(x, 0)^2",
    derivative=r"\partial x = 2 \, \partial y \, \max(x, 0)",
    inputs=(Symbol("x", "x", "(...)", "any array"),),
    result=Symbol("y", "y", "(...)", "rectified and squared array"),
    role="activation",
)
