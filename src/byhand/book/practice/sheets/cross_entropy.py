"""Two rows of logits that are logarithms of small whole numbers, so that every probability is a fraction."""

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.numbers.closed_form import array
from byhand.book.practice.sheets import Drawn, Picker
from byhand.engine import Tensor
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.softmax import softmax
from byhand.tracing.trace import Trace


def draw(picker: Picker) -> Drawn:
    """Draw odds for three tokens in two rows, and the targets."""
    odds = picker.integers(1, 5, 2, 3)
    while any(len(set(row)) == 1 for row in odds):
        odds = picker.integers(1, 5, 2, 3)
    targets = picker.integers(0, 2, 2)
    logits = [[f"log({n})" if n > 1 else 0 for n in row] for row in odds]
    z = Tensor(array(logits), requires_grad=True, name="z")
    first = Trace.of(lambda: softmax(z, name="p"))
    second = Trace.of(lambda: cross_entropy(z, Tensor(np.asarray(targets), name="y"), name="L"))
    steps = (*forward_steps(first), *forward_steps(second), *backward_steps(second, array(1)))
    return (("z", logits), ("y", targets)), steps
