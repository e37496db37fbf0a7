r"""SwiGLU: one linear layer's result, gated by the SiLU of another's.

Equation    y = silu(g) u = g s u,   s = sigmoid(g) = 1 / (1 + exp(-g))
Derivative  d_g = d_y * u s (1 + g (1 - s)),   d_u = d_y * g s
Shapes      gate g, up u (...) -> the same
Raises      ShapeError if gate and up differ in shape
Source      Shazeer 2020, arXiv:2002.05202
"""

from byhand.engine.arrays import require, sigmoid
from byhand.engine.equation import TRANSCENDENTAL, Equation, Symbol, per_element
from byhand.engine.terms import element, elements, function, number, product, total
from byhand.equations.silu import gate_term


def forward(gate, up):
    """Keep the sigmoid: both derivatives need it again."""
    require(gate.shape == up.shape, f"swiglu: gate {gate.shape} and up {up.shape} differ in shape")
    s = sigmoid(gate)
    return gate * s * up, (gate, up, s)


def vjp(saved, d_y):
    """Product rule: d_y times up passes through the slope of SiLU to the gate."""
    gate, up, s = saved
    return d_y * up * s * (1.0 + gate * (1.0 - s)), d_y * gate * s


def terms(index, inputs, result):
    """Three factors: the gate's element, its sigmoid, the gated element."""
    gate, up = element(inputs, 0, index, "gate"), element(inputs, 1, index, "up")
    return product((gate, gate_term(gate), up))


def saved_terms(which, index, inputs):
    """The gate's sigmoid."""
    return gate_term(element(inputs, 0, index, "gate"))


flops = per_element(5 + TRANSCENDENTAL, 8)


def gradient_terms(saved, d_results, slot, index):
    """d u s (1 + g (1 - s)), or d g s."""
    d, gate, up, s = elements((*d_results, *saved), index, "∂y", "g", "u", "s")
    shut = total((number(1), function("negative", s)))
    return product((d, gate, s)) if slot else product((d, up, s, total((number(1), product((gate, shut))))))


swiglu = Equation.of(
    __name__,
    title="SwiGLU",
    latex=r"y = g \odot s \odot u, \quad s = \frac{1}{1 + e^{-g}}",
    derivative=r"\partial g = \partial y \odot u \odot s \odot (1 + g \odot (1 - s)), \quad"
    r" \partial u = \partial y \odot g \odot s",
    inputs=(
        Symbol("gate", "g", "(..., F)", "result of the gate's linear layer"),
        Symbol("up", "u", "(..., F)", "result of the gated linear layer"),
    ),
    result=Symbol("y", "y", "(..., F)", "gated array"),
    role="gate",
)
