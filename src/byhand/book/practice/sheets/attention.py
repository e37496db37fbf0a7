"""Three tokens, head width 4, so that the root below the scores is 2; values of two columns."""

from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.numbers.closed_form import array
from byhand.book.practice.sheets import Drawn, Picker
from byhand.engine import Tensor
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.mix import mix
from byhand.tracing.trace import Trace

LARGEST = 6  # dot product; with a larger one, one exponential dominates


def draw(picker: Picker) -> Drawn:
    """Draw queries and keys until no dot product is too large; then scores, weights and mixtures."""
    while True:
        q, k = picker.integers(-1, 2, 3, 4), picker.integers(-1, 2, 3, 4)
        dots = [abs(sum(a * b for a, b in zip(x, y, strict=True))) for x in q for y in k]
        if max(dots) <= LARGEST and len(set(dots)) > 2:
            break
    v = picker.integers(-2, 4, 3, 2)
    tensors = [Tensor(array([[x]]), name=name) for name, x in (("q", q), ("k", k), ("v", v))]

    def whole() -> Tensor:
        weights = causal_softmax(attention_scores(*tensors[:2], name="S"), name="P")
        return mix(weights, tensors[2], name="Y")

    return (("q", q), ("k", k), ("v", v)), tuple(forward_steps(Trace.of(whole)))
