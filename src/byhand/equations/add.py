r"""Addition, with broadcasting.

Equation    y = a + b
Derivative  d_a = d_y and d_b = d_y, each summed over the axes along which its input was repeated
Shapes      a and b broadcast to y
Raises      ShapeError if the shapes do not broadcast
Source      NumPy broadcasting rules
"""

from byhand.engine.arrays import sum_to_shape
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import cotangent_sum, element, indices, total
from byhand.equations.broadcast import broadcast_index, require_broadcast


def forward(a, b):
    """Add element by element."""
    require_broadcast("add", a, b)
    return a + b, (a, b)


def vjp(saved, d_y):
    """Each input gets the cotangent, summed where it was repeated."""
    a, b = saved
    return sum_to_shape(d_y, a.shape), sum_to_shape(d_y, b.shape)


def terms(index, inputs, result):
    """Two numbers."""
    return total(element(inputs, k, broadcast_index(index, x.shape), "ab"[k]) for k, x in enumerate(inputs))


def gradient_terms(saved, d_results, slot, index):
    """The cotangents of the sums that read the element."""
    read = (place for place in indices(d_results[0].shape) if broadcast_index(place, saved[slot].shape) == index)
    return cotangent_sum(element(d_results, 0, place, "∂y") for place in read)


add = Equation.of(
    __name__,
    title="Addition",
    latex=r"y = a + b",
    derivative=r"\partial a = \partial y, \quad \partial b = \partial y",
    inputs=(Symbol("a", "a", "(...)", "first summand"), Symbol("b", "b", "(...)", "second summand")),
    result=Symbol("y", "y", "(...)", "sum"),
    seed_names=("nn::add", "nn::add_scalar"),
)
