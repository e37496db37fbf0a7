r"""SiLU, also called swish: each number times its own sigmoid.

Equation    y = x s,   s = sigmoid(x) = 1 / (1 + exp(-x))
Derivative  d_x = d_y * s (1 + x (1 - s))
Shapes      any -> the same
Source      Hendrycks & Gimpel 2016, arXiv:1606.08415; Ramachandran, Zoph & Le 2017, arXiv:1710.05941
"""

from byhand.engine.arrays import sigmoid
from byhand.engine.equation import TRANSCENDENTAL, Equation, Symbol, per_element
from byhand.engine.terms import Term, element, elements, function, number, product, ratio, total


def forward(x):
    """Keep the sigmoid: the derivative needs it again."""
    s = sigmoid(x)
    return x * s, (x, s)


def vjp(saved, d_y):
    """Product rule on x and s, whose slope is s (1 - s)."""
    x, s = saved
    return (d_y * s * (1.0 + x * (1.0 - s)),)


def terms(index, inputs, result):
    """The number times its gate."""
    x = element(inputs, 0, index, "x")
    return product((x, gate_term(x)))


def gate_term(x: Term) -> Term:
    """Return the term of sigmoid(x)."""
    return ratio(number(1), total((number(1), function("exp", function("negative", x)))), "s")


def saved_terms(which, index, inputs):
    """The gate s."""
    return gate_term(element(inputs, 0, index, "x"))


flops = per_element(4 + TRANSCENDENTAL, 5)


def gradient_terms(saved, d_results, slot, index):
    """d s (1 + x (1 - s))."""
    d, x, s = elements((*d_results, *saved), index, "∂y", "x", "s")
    shut = total((number(1), function("negative", s)))
    return product((d, s, total((number(1), product((x, shut))))))


silu = Equation.of(
    __name__,
    title="SiLU (swish)",
    latex=r"y = x\,s, \quad s = \frac{1}{1 + e^{-x}}",
    derivative=r"\partial x = \partial y \cdot s\,(1 + x\,(1 - s))",
    inputs=(Symbol("x", "x", "(...)", "any array"),),
    result=Symbol("y", "y", "(...)", "gated array"),
    role="activation",
)
