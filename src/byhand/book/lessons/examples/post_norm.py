"""A post-norm block: x = LN(x + attention(x)), then LN(x + MLP(x)), with ReLU, two heads and no mask."""

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.examples import Maker
from byhand.book.lessons.examples.paper_gpt import model_of
from byhand.book.lessons.examples.paper_gpt_4 import WEIGHTS as FOUR_COLUMNS
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.tracing.trace import Trace

CONFIG = ModelConfig(
    vocab_size=4, seq_len=2, d_model=4, n_heads=2, d_ff=4, norm_position="post", activation="relu", causal=False
)
WEIGHTS = FOUR_COLUMNS | {"wpe": [["1/10", 0, 1, 0], [0, "1/10", 0, "1/2"]]}  # so that the second head has work too
TOKENS, TARGETS = [[2, 1]], [[1, 3]]


def lesson(array: Maker) -> Content:
    """Two tokens through one block to the loss, and every gradient."""
    arrays = {n: array(w) for n, w in WEIGHTS.items()}
    model = model_of(CONFIG, arrays)
    trace = Trace.of(lambda: model.loss(np.asarray(TOKENS), np.asarray(TARGETS)))
    intro = Words(
        "The normalisation follows each sublayer's sum instead of preceding the sublayer, both tokens see each "
        "other, and ReLU sets negative hidden numbers to zero.",
        "归一化放在每个子层相加之后，而不是之前；两个词元可以互相看到；ReLU 把隐藏层的负值截为零。",
    )
    steps = (*forward_steps(trace), *backward_steps(trace, array(1)))
    return intro, steps, given(trace)
