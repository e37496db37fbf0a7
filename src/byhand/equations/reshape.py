r"""Reshape: the same elements in row-major order under other axes.

The offset of x[i,j,k] in (I, J, K) is (i J + j) K + k.

Equation    y[j] = x[i] where both have the same flat offset
Derivative  d_x is d_y under x's axes
Shapes      x (...) -> shape, with the same number of elements; one length may be -1
Raises      ShapeError if the numbers of elements differ
Source      row-major (C) order
"""

import math

from byhand.engine.arrays import require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import cotangent_sum, element, total


def forward(x, *, shape):
    """Relabel the axes."""
    known = math.prod(n for n in shape if n != -1)
    size = math.prod(x.shape)
    fits = size == known if -1 not in shape else shape.count(-1) == 1 and known > 0 and size % known == 0
    require(fits, f"reshape: {x.shape} holds {size} elements and cannot become {shape}")
    return x.reshape(shape), (x,)


def vjp(saved, d_y, *, shape):
    """Relabel them back."""
    (x,) = saved
    return (d_y.reshape(x.shape),)


def terms(index, inputs, result, *, shape):
    """The element at the same flat offset."""
    return total([element(inputs, 0, _moved(index, result.shape, inputs[0].shape), "x")])


def _moved(index, shape, other):
    """Return the index with the same flat offset in another shape."""
    offset = 0
    for i, n in zip(index, shape, strict=True):
        offset = offset * n + i
    place = []
    for n in reversed(other):
        offset, i = divmod(offset, n)
        place.append(i)
    return tuple(reversed(place))


def gradient_terms(saved, d_results, slot, index, *, shape):
    """The cotangent at the same flat offset."""
    return cotangent_sum([element(d_results, 0, _moved(index, saved[0].shape, d_results[0].shape), "∂y")])


reshape = Equation.of(
    __name__,
    title="Reshape",
    latex=r"y_{j} = x_{i}, \quad \mathrm{offset}(j) = \mathrm{offset}(i)",
    derivative=r"\partial x_i = \partial y_j",
    inputs=(Symbol("x", "x", "(...)", "any array"),),
    result=Symbol("y", "y", "shape", "the same elements in row-major order"),
    moves=True,
    seed_names=("nn::reshape",),
)
