"""Two linear layers with a ReLU between, all in whole numbers; at least one hidden number is cut and one passes."""

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.numbers.closed_form import array
from byhand.book.practice.sheets import Drawn, Picker
from byhand.engine import Tensor
from byhand.equations.linear import linear
from byhand.equations.relu import relu
from byhand.tracing.trace import Trace


def draw(picker: Picker) -> Drawn:
    """Draw two rows, two weights and the cotangent of the result."""
    while True:
        x, w_1, b_1 = picker.integers(-2, 3, 2, 2), picker.integers(-2, 2, 2, 2), picker.integers(-1, 1, 2)
        hidden = [
            sum(a * b for a, b in zip(row, column, strict=True)) + c for row in x for column, c in _columns(w_1, b_1)
        ]
        if 0 not in hidden and min(hidden) < 0 < max(hidden):
            break
    w_2, d = picker.integers(-2, 2, 2, 2), picker.integers(-1, 2, 2, 2)
    while not any(any(row) for row in d):
        d = picker.integers(-1, 2, 2, 2)
    given = (("x", x), ("W1", w_1), ("b1", b_1), ("W2", w_2))
    tensors = [Tensor(array(a), requires_grad=True, name=n) for n, a in given]

    def whole() -> Tensor:
        return linear(relu(linear(*tensors[:3], name="u"), name="h"), tensors[3], name="z")

    trace = Trace.of(whole)
    steps = (*forward_steps(trace), *backward_steps(trace, array(d)))
    return (*given, ("∂z", d)), steps


def _columns(weight: list[list[int]], bias: list[int]) -> list[tuple[tuple[int, ...], int]]:
    return list(zip(zip(*weight, strict=True), bias, strict=True))
