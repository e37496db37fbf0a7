"""The paper GPT with four columns and two heads, which show LayerNorm's derivative."""

from typing import Any

from byhand.book.lessons.examples import Maker
from byhand.book.lessons.examples.paper_gpt import whole
from byhand.book.lessons.lesson import Content
from byhand.book.words.language import Words
from byhand.config import ModelConfig

CONFIG = ModelConfig(vocab_size=4, seq_len=3, d_model=4, n_layers=1, n_heads=2, d_ff=4)
WEIGHTS: dict[str, Any] = {
    "wte": [[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 1]],
    "wpe": [["1/10", 0, 0, 0], [0, "1/10", 0, 0], [0, 0, "1/10", 0]],
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


def lesson(array: Maker) -> Content:
    """The same steps as the paper GPT."""
    intro = Words(
        "Each head works on two of the four columns. Four numbers keep two degrees of freedom when they are "
        "normalised, so LayerNorm's derivative removes a shift and a stretch and lets the rest through.",
        "每个头处理四列中的两列。四个数归一化之后还剩两个自由度，所以能看到层归一化的导数去掉了平移与伸缩，"
        "保留其余部分。",
    )
    return whole(intro, CONFIG, WEIGHTS, array)
