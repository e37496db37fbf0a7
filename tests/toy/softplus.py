r"""Softplus: a smooth ReLU. Its derivative is the logistic function.

Equation    y = log(1 + exp(x))
Derivative  d_x = d_y / (1 + exp(-x))
Shapes      any -> the same
Source      Dugas et al. 2001, Incorporating Second-Order Functional Knowledge for Better Option Pricing
"""

from byhand.engine.arrays import namespace
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, elements, function, number, product, ratio, total


def forward(x):
    """Take the exponential of -|x| only, which cannot overflow."""
    xp = namespace(x)
    positive = xp.where(x > 0, x, xp.zeros_like(x))
    return positive + xp.log1p(xp.exp(-xp.abs(x))), (x,)


def vjp(saved, d_y):
    """Multiply with the logistic function, written with tanh so that nothing overflows."""
    (x,) = saved
    return (d_y * (0.5 + 0.5 * namespace(x).tanh(0.5 * x)),)


def terms(index, inputs, result):
    """The logarithm of one plus an exponential."""
    return function("log", total((number(1), function("exp", element(inputs, 0, index, "x")))))


def gradient_terms(saved, d_results, slot, index):
    """d / (1 + exp(-x))."""
    d, x = elements((*d_results, *saved), index, "∂y", "x")
    odds = function("exp", function("negative", x))
    return product((d, ratio(number(1), total((number(1), odds)))))


softplus = Equation.of(
    __name__,
    title="Softplus",
    latex=r"y = \log(1 + e^{x})",
    derivative=r"\partial x = \frac{\partial y}{1 + e^{-x}}",
    inputs=(Symbol("x", "x", "(...)", "any array"),),
    result=Symbol("y", "y", "(...)", "positive array"),
    role="activation",
)
