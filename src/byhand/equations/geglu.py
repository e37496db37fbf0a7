r"""GeGLU: one linear layer's result, gated by the GELU (tanh form) of another's.

Equation    y = gelu(g) u = g/2 (1 + tanh(v)) u,   v = k (g + 0.044715 g^3),   k = sqrt(2/pi)
Derivative  d_g = d_y * u ((1 + tanh v)/2 + g/2 (1 - tanh^2 v) k (1 + 3 * 0.044715 g^2)),   d_u = d_y * gelu(g)
Shapes      gate g, up u (...) -> the same
Raises      ShapeError if gate and up differ in shape
Source      Shazeer 2020, arXiv:2002.05202
"""

from byhand.engine.arrays import require
from byhand.engine.equation import TRANSCENDENTAL, Equation, Symbol, per_element
from byhand.engine.terms import element, elements, number, product, ratio, total
from byhand.equations.gelu import gated_term, gelu, slope_term, tanh_term


def forward(gate, up):
    """Keep the tanh: both derivatives need it again."""
    require(gate.shape == up.shape, f"geglu: gate {gate.shape} and up {up.shape} differ in shape")
    opened, (_, tanh) = gelu.forward(gate)
    return opened * up, (gate, up, tanh)


def vjp(saved, d_y):
    """Product rule: d_y times up passes through the slope of GELU to the gate."""
    gate, up, tanh = saved
    (d_gate,) = gelu.vjp((gate, tanh), d_y * up)
    return d_gate, d_y * (0.5 * gate * (1.0 + tanh))


def terms(index, inputs, result):
    """GELU of the gate's element, times the gated element."""
    return product((gated_term(element(inputs, 0, index, "x"), "v"), element(inputs, 1, index, "up")))


def saved_terms(which, index, inputs):
    """tanh v."""
    return tanh_term(element(inputs, 0, index, "x"), "v")


flops = per_element(8 + TRANSCENDENTAL, 16)


def gradient_terms(saved, d_results, slot, index):
    """d u times the slope of GELU at g, or d gelu(g)."""
    d, gate, up, tanh = elements((*d_results, *saved), index, "∂y", "g", "u", "tanh v")
    if slot:
        return product((d, ratio(gate, number(2)), total((number(1), tanh))))
    return product((d, up, slope_term(gate, tanh)))


geglu = Equation.of(
    __name__,
    title="GeGLU",
    latex=r"y = \tfrac{g}{2}\left(1 + \tanh v\right) \odot u, \quad v = \sqrt{2/\pi}\,(g + 0.044715\,g^3)",
    derivative=r"\partial g = \partial y \odot u \odot \left( \tfrac{1 + \tanh v}{2} + \tfrac{g}{2}\,(1 - \tanh^2 v)"
    r"\,\sqrt{2/\pi}\,(1 + 3 \cdot 0.044715\,g^2) \right), \quad"
    r" \partial u = \partial y \odot \tfrac{g}{2}\left(1 + \tanh v\right)",
    inputs=(
        Symbol("gate", "g", "(..., F)", "result of the gate's linear layer"),
        Symbol("up", "u", "(..., F)", "result of the gated linear layer"),
    ),
    result=Symbol("y", "y", "(..., F)", "gated array"),
    role="gate",
)
