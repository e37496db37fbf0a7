r"""Transpose: swap the last two axes. A tied LM head multiplies by the transposed token table.

Equation    Y[...,n,m] = A[...,m,n]
Derivative  d_A[...,m,n] = d_Y[...,n,m]
Shapes      a (..., M, N) -> (..., N, M)
Raises      ShapeError if a has fewer than two axes
Source      Press & Wolf 2017, arXiv:1608.05859 (tied head)
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import cotangent_sum, element, total


def forward(a):
    """Swap the axes; elements do not change."""
    require(a.ndim >= 2, f"transpose: needs a matrix, not shape {a.shape}")
    return namespace(a).matrix_transpose(a), ()


def vjp(saved, d_y):
    """Swap them back."""
    return (namespace(d_y).matrix_transpose(d_y),)


def terms(index, inputs, result):
    """The element mirrored at the diagonal."""
    *batch, n, m = index
    return total([element(inputs, 0, (*batch, m, n), "A")])


def gradient_terms(saved, d_results, slot, index):
    """The cotangent mirrored at the diagonal."""
    *batch, m, n = index
    return cotangent_sum([element(d_results, 0, (*batch, n, m), "∂Y")])


transpose = Equation.of(
    __name__,
    title="Transpose",
    latex=r"Y = A^{\top}",
    derivative=r"\partial A = (\partial Y)^{\top}",
    inputs=(Symbol("a", "A", "(..., M, N)", "a matrix"),),
    result=Symbol("y", "Y", "(..., N, M)", "its transpose"),
    moves=True,
)
