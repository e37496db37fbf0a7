"""Rows of four whole numbers whose standard deviation is a whole number; without eps."""

from itertools import product

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.numbers.closed_form import array
from byhand.book.practice.sheets import NONZERO, Drawn, Picker
from byhand.engine import Tensor
from byhand.equations.layer_norm import layer_norm
from byhand.tracing.trace import Trace

SPREADS = tuple(
    d
    for d in product(range(-7, 8), repeat=4)
    if sum(d) == 0 and sum(x * x for x in d) in (4 * s * s for s in (1, 2, 3, 5))
)


def draw(picker: Picker) -> Drawn:
    """Draw deviations, a mean, gain and bias, and the cotangent."""
    spread, mean = picker.one(SPREADS), picker.integers(2, 9)
    x = [[mean + d for d in spread]]
    gain, bias = [picker.one((1, 2, -1)) for _ in range(4)], picker.integers(-1, 1, 4)
    d = picker.several(NONZERO, 1, 4)
    inputs = [Tensor(array(a), requires_grad=True, name=n) for n, a in (("x", x), ("g", gain), ("b", bias))]
    trace = Trace.of(lambda: layer_norm(*inputs, eps=0.0, name="y"))
    steps = (*forward_steps(trace), *backward_steps(trace, array(d)))
    return (("x", x), ("g", gain), ("b", bias), ("eps of LN", 0), ("∂y", d)), steps
