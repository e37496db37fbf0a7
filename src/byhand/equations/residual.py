r"""Residual connection: a sublayer adds its output to the stream.

Equation    y = x + a,   a the sublayer's output
Derivative  d_x = d_y,  d_a = d_y
Shapes      x and a (..., C), the same shape -> y (..., C)
Raises      ShapeError if the shapes differ: a residual never broadcasts
Source      He et al. 2016, arXiv:1512.03385
"""

from byhand.engine.arrays import require
from byhand.engine.equation import Equation, Symbol, per_element
from byhand.engine.terms import cotangent_sum, element, total


def forward(x, a):
    """Add the sublayer's output to its input."""
    require(x.shape == a.shape, f"residual: stream {x.shape} and sublayer {a.shape} must have the same shape")
    return x + a, ()


def vjp(saved, d_y):
    """Both inputs get the cotangent, unchanged."""
    return d_y, d_y


def terms(index, inputs, result):
    """The stream's element plus the sublayer's."""
    return total((element(inputs, 0, index, "x"), element(inputs, 1, index, "a")))


def gradient_terms(saved, d_results, slot, index):
    """The cotangent itself."""
    return cotangent_sum([element(d_results, 0, index, "∂y")])


flops = per_element(1, 0)  # one addition; backward nothing

residual = Equation.of(
    __name__,
    title="Residual connection",
    latex=r"X_{\mathrm{out}} = X_{\mathrm{in}} + A",
    derivative=r"\partial X_{\mathrm{in}} = \partial X_{\mathrm{out}}, \quad \partial A = \partial X_{\mathrm{out}}",
    inputs=(
        Symbol("x", r"X_{\mathrm{in}}", "(..., C)", "the residual stream"),
        Symbol("a", "A", "(..., C)", "the sublayer's output"),
    ),
    result=Symbol("y", r"X_{\mathrm{out}}", "(..., C)", "the stream after the sublayer"),
    seed_names=("nn::add",),
)
