r"""Element-wise multiplication, with broadcasting.

Equation    y = a * b
Derivative  d_a = d_y * b and d_b = d_y * a, each summed over the axes along which its input was repeated
Shapes      a and b broadcast to y
Raises      ShapeError if the shapes do not broadcast
Source      product rule
"""

from byhand.engine.arrays import sum_to_shape
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import cotangent_sum, element, indices, product
from byhand.equations.broadcast import broadcast_index, require_broadcast


def forward(a, b):
    """Multiply element by element."""
    require_broadcast("mul", a, b)
    return a * b, (a, b)


def vjp(saved, d_y):
    """Each input's cotangent is the result's times the other input."""
    a, b = saved
    return sum_to_shape(d_y * b, a.shape), sum_to_shape(d_y * a, b.shape)


def terms(index, inputs, result):
    """Two factors."""
    return product(element(inputs, k, broadcast_index(index, x.shape), "ab"[k]) for k, x in enumerate(inputs))


def gradient_terms(saved, d_results, slot, index):
    """Cotangents times the other factor, for each read of the element."""
    arrays, shape, other = (*d_results, *saved), saved[slot].shape, 1 - slot
    read = (place for place in indices(d_results[0].shape) if broadcast_index(place, shape) == index)
    factors = ((place, broadcast_index(place, saved[other].shape)) for place in read)
    return cotangent_sum(
        (element(arrays, 0, at, "∂y"), element(arrays, 1 + other, of, "ab"[other])) for at, of in factors
    )


mul = Equation.of(
    __name__,
    title="Multiplication",
    latex=r"y = a \odot b",
    derivative=r"\partial a = \partial y \odot b, \quad \partial b = \partial y \odot a",
    inputs=(Symbol("a", "a", "(...)", "first factor"), Symbol("b", "b", "(...)", "second factor")),
    result=Symbol("y", "y", "(...)", "product"),
    seed_names=("nn::mul", "nn::mul_scalar"),
)
