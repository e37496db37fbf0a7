r"""GELU, tanh form: a smooth gate that passes large values and suppresses negative ones.

Equation    y = x/2 * (1 + tanh(u)),   u = k (x + 0.044715 x^3),   k = sqrt(2/pi)
Derivative  d_x = d_y * ((1 + tanh u)/2 + x/2 * (1 - tanh^2 u) * k (1 + 3 * 0.044715 x^2))
Shapes      any -> the same
Source      Hendrycks & Gimpel 2016, arXiv:1606.08415
"""

import math

from byhand.engine.arrays import namespace
from byhand.engine.equation import TRANSCENDENTAL, Equation, Symbol, per_element
from byhand.engine.terms import element, elements, function, number, product, ratio, total

K = math.sqrt(2 / math.pi)
CUBIC = 0.044715


def forward(x):
    """Keep the tanh: the derivative needs it again."""
    tanh = namespace(x).tanh(x * (K + K * CUBIC * (x * x)))
    return 0.5 * x * (1.0 + tanh), (x, tanh)


def vjp(saved, d_y):
    """Product rule on x/2 and (1 + tanh u)."""
    x, tanh = saved
    gate = 0.5 + 0.5 * tanh
    slope = x * (1.0 - tanh * tanh) * (0.5 * K + 1.5 * K * CUBIC * (x * x))
    return (d_y * (gate + slope),)


def terms(index, inputs, result):
    """Half of x, times one plus a tanh."""
    return gated_term(element(inputs, 0, index, "x"))


def gated_term(x, name="u"):
    """Return the term of GELU at x; `name` is the tanh's argument. Shared with GeGLU, whose u is another."""
    return product((number(0.5), x, total((number(1), tanh_term(x, name)))))


def saved_terms(which, index, inputs):
    """tanh u."""
    return tanh_term(element(inputs, 0, index, "x"))


def tanh_term(x, name="u"):
    """Return the term of the tanh; `name` is its argument."""
    cube = product((number(CUBIC), x, x, x))
    return function("tanh", product((number(K, "k"), total((x, cube))), name))


flops = per_element(7 + TRANSCENDENTAL, 11)  # backward reuses the tanh


def gradient_terms(saved, d_results, slot, index):
    """d ((1 + tanh u)/2 + x/2 (1 - tanh^2 u) k (1 + 3 cubic x^2))."""
    d, x, tanh = elements((*d_results, *saved), index, "∂y", "x", "tanh")
    return product((d, slope_term(x, tanh)))


def slope_term(x, tanh):
    """Return the term of GELU's slope at x; shared with GeGLU."""
    gate = ratio(total((number(1), tanh)), number(2))
    inner = total((number(1), product((number(3), number(CUBIC), x, x))))
    bend = total((number(1), function("negative", function("square", tanh))))
    rest = product((ratio(x, number(2)), bend, number(K, "k"), inner))
    return total((gate, rest))


gelu = Equation.of(
    __name__,
    title="GELU (tanh form)",
    latex=r"y = \tfrac{x}{2}\left(1 + \tanh u\right), \quad u = \sqrt{2/\pi}\,(x + 0.044715\,x^3)",
    derivative=r"\partial x = \partial y \left( \tfrac{1 + \tanh u}{2} + \tfrac{x}{2}\,(1 - \tanh^2 u)"
    r"\,\sqrt{2/\pi}\,(1 + 3 \cdot 0.044715\,x^2) \right)",
    inputs=(Symbol("x", "x", "(...)", "any array"),),
    result=Symbol("y", "y", "(...)", "gated array"),
    role="activation",
    seed_names=("nn::gelu",),
)
