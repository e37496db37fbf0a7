"""Two linear layers with a ReLU between, all in whole numbers: of four hidden numbers one is cut and three pass."""

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.numbers.closed_form import array
from byhand.book.practice.sheets import NONZERO, Drawn, Picker
from byhand.engine import Tensor
from byhand.equations.linear import linear
from byhand.equations.relu import relu
from byhand.tracing.trace import Trace


def draw(picker: Picker) -> Drawn:
    """Draw a row, two weights and the cotangent of the result."""
    while True:
        x, w_1, b_1 = picker.several((*NONZERO, 3), 1, 2), picker.several(NONZERO, 2, 4), picker.integers(-1, 1, 4)
        hidden = [sum(a * b for a, b in zip(x[0], w, strict=True)) + c for *w, c in zip(*w_1, b_1, strict=True)]
        if 0 not in hidden and sum(u < 0 for u in hidden) == 1:
            break
    while True:
        w_2, d = picker.several(NONZERO, 4, 2), picker.several(NONZERO, 1, 2)
        results = [
            sum(max(u, 0) * w for u, w in zip(hidden, column, strict=True)) for column in zip(*w_2, strict=True)
        ]
        if all(results) and all(a * d[0][0] + b * d[0][1] for a, b in w_2):  # no 0 in z, none in ∂h
            break
    given = (("x", x), ("W_1", w_1), ("b_1", b_1), ("W_2", w_2))
    tensors = [Tensor(array(a), requires_grad=True, name=n) for n, a in given]

    def whole() -> Tensor:
        return linear(relu(linear(*tensors[:3], name="u"), name="h"), tensors[3], name="z")

    trace = Trace.of(whole)
    steps = (*forward_steps(trace), *backward_steps(trace, array(d)))
    return (*given, ("∂z", d)), steps
