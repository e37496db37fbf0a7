"""Causal attention of one head over three tokens, D = 4, with weights that are fractions; and back to Q, K and V."""

from byhand.book.lessons.examples.single import single, walked
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.mix import mix
from byhand.tracing.trace import Trace

Q = [[1, 1, 1, 1], [0, 0, "log(9)", 0], [0, "log(4)", 0, "log(25/4)"]]
K = [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]]
V = [[4, 0], [8, 8], [0, 8]]
D_Y = [[1, -1], [0, 1], [1, 0]]


@listed(200, "Attention of one head, forward and back", "注意力：一个头，前向与反向")
def lesson(array: Maker) -> Content:
    """Scores, weights, mixtures, and their derivatives."""
    intro = Words(
        "Three tokens, head width D = 4, so the scores are divided by √4 = 2; the values have two columns. "
        "The second token gives weights 1/4 and 3/4, the third 1/4, 1/8 and 5/8; the first sees itself alone.",
        "三个词元，头宽 D = 4，所以分数除以 √4 = 2；值有两列。第二个词元的权重是 1/4、3/4，第三个是 1/4、1/8、5/8；第一个只看到自己。",
    )
    q, k, v = (Tensor(array([[x]]), requires_grad=True, name=n) for n, x in (("Q", Q), ("K", K), ("V", V)))
    trace = Trace.of(lambda: mix(causal_softmax(attention_scores(q, k, name="S"), name="P"), v, name="Y"))
    return single(intro, walked(trace, array([[D_Y]])))
