"""A post-norm block: x = LN(x + attention(x)), then LN(x + MLP(x)), with ReLU, two heads and no mask."""

from typing import Any

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.examples.paper_gpt import model_of
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.tracing.trace import Trace

CONFIG = ModelConfig(
    vocab_size=4, seq_len=2, d_model=4, n_heads=2, d_ff=4, norm_position="post", activation="relu", causal=False
)
WEIGHTS: dict[str, Any] = {
    "wte": [[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 1]],
    "wpe": [["1/10", 0, 1, 0], [0, "1/10", 0, "1/2"]],
    "blocks.0.attn.w_qkv": [
        [1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0],
        [0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0],
        [0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0],
        [0, 0, 0, 1, 0, 0, 0, "1/2", 0, 0, 0, 1],
    ],
    "blocks.0.attn.b_qkv": [0] * 12,
    "blocks.0.attn.w_proj": [["1/2", 0, 0, 0], [0, "1/2", 0, 0], [0, 0, "1/2", "1/2"], [0, 0, 0, "1/2"]],
    "blocks.0.attn.b_proj": [0] * 4,
    "blocks.0.mlp.w_fc": [[1, 0, 0, "-1/2"], [0, 1, 0, "1/2"], [0, 0, 1, 0], ["1/2", 0, 0, 1]],
    "blocks.0.mlp.b_fc": [0, 0, "1/2", 0],
    "blocks.0.mlp.w_out": [["1/2", 0, 0, 0], [0, "1/2", 0, 0], ["1/4", 0, "-1/4", 0], [0, 0, "1/2", "1/2"]],
    "blocks.0.mlp.b_out": [0] * 4,
    "lm_head.w": [[1, 0, -1, "1/2"], [0, 1, "1/2", -1], ["1/2", 0, 1, 0], [0, "-1/2", 0, 1]],
    "lm_head.b": [0] * 4,
}
TOKENS, TARGETS = [[2, 1]], [[1, 3]]


@listed(60, "A post-norm block with ReLU and two heads, without a mask", "后置归一化、ReLU、两个头、无掩码的块")
def lesson(array: Maker) -> Content:
    """Two tokens through one block to the loss, and every gradient."""
    arrays = {n: array(w) for n, w in WEIGHTS.items()}
    model = model_of(CONFIG, arrays)
    trace = Trace.of(lambda: model.loss(np.asarray(TOKENS), np.asarray(TARGETS)))
    intro = Words(
        "The normalisation follows each sublayer's sum instead of preceding the sublayer, both tokens see each other, and ReLU sets negative hidden numbers to zero.",
        "归一化放在每个子层相加之后，而不是之前；两个词元可以互相看到；ReLU 把隐藏层的负值截为零。",
    )
    steps = (*forward_steps(trace), *backward_steps(trace, array(1)))
    return intro, steps, given(trace)
