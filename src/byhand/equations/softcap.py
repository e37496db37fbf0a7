r"""Softcap: squash numbers smoothly into the range from -cap to cap.

Equation    y = cap tanh(x / cap)
Derivative  d_x = d_y (1 - (y / cap)^2)
Shapes      any -> the same
Units       y has x's; small numbers hardly change, and no logit exceeds the cap
Source      Bello et al. 2016, arXiv:1611.09940; Gemma Team 2024, arXiv:2408.00118
"""

from byhand.engine.arrays import namespace
from byhand.engine.equation import TRANSCENDENTAL, Equation, Symbol, per_element
from byhand.engine.terms import element, elements, function, number, product, ratio, total


def forward(x, *, cap):
    """Keep the tanh: the derivative needs it again."""
    tanh = namespace(x).tanh(x / cap)
    return cap * tanh, (tanh,)


def vjp(saved, d_y, *, cap):
    """The slope of the tanh; both factors cap cancel."""
    (tanh,) = saved
    return (d_y * (1.0 - tanh * tanh),)


def terms(index, inputs, result, *, cap):
    """The cap times a tanh."""
    return product((number(cap, "c"), saved_terms(0, index, inputs, cap=cap)))


def saved_terms(which, index, inputs, *, cap):
    """tanh(x / cap)."""
    return function("tanh", ratio(element(inputs, 0, index, "x"), number(cap, "c")))


flops = per_element(2 + TRANSCENDENTAL, 3)


def gradient_terms(saved, d_results, slot, index, *, cap):
    """d (1 - tanh^2)."""
    d, tanh = elements((*d_results, *saved), index, "∂y", "tanh(x/c)")
    return product((d, total((number(1), function("negative", function("square", tanh))))))


softcap = Equation.of(
    __name__,
    title="Softcap of the logits",
    latex=r"y = c \tanh \frac{x}{c}",
    derivative=r"\partial x = \partial y \left( 1 - \left( \frac{y}{c} \right)^2 \right)",
    inputs=(Symbol("x", "x", "(...)", "any array"),),
    result=Symbol("y", "y", "(...)", "the same, between -c and c"),
)
