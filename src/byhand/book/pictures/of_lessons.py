"""The pictures of each lesson, and all of a lesson's as one."""

from __future__ import annotations

from byhand.book.pictures import attention, blocks, curves, graphs, matrices, memory, paper_gpt, tokens
from byhand.book.pictures.canvas import GAP, LINE, Canvas
from byhand.book.pictures.picture import Picture, drawn
from byhand.book.words.language import Words

OF_LESSONS: dict[str, tuple[Picture, ...]] = {
    "nudges": (graphs.six_nodes,),
    "paper-gpt": (
        paper_gpt.gpt_in_a_minute, attention.attention_one_head, paper_gpt.training_loop, blocks.block_in_words,
        curves.layer_norm_removes,
    ),
    "two-tokens": (graphs.core_forward, graphs.core_backward),
    "matrix-core": (graphs.core_forward, graphs.core_backward),
    "matrix-core-rows": (graphs.core_forward, graphs.core_backward),
    "matrix-core-exercise": (graphs.core_backward,),
    "post-norm": (blocks.post_norm_block,),
    "attention-index": (memory.memory_heads, attention.attention_two_heads),
    "memory-layout": (memory.memory_rows, memory.memory_batch, memory.memory_heads),
    "multi-head": (attention.attention_two_heads,),
    "kv-cache": (paper_gpt.cache_growing,),
    "rotary": (attention.rotary_turns,),
    "bpe": (tokens.merges,),
    "sampling": (tokens.softmax_temperature, tokens.softmax_top_k, tokens.softmax_top_p),
    "cross-entropy": (curves.cross_entropy_curve,),
    "next-word": (curves.cross_entropy_curve,),
    "gelu": (curves.gelu_relu, curves.gelu_relu_slopes),
    "layer-norm": (curves.layer_norm_removes,),
    "adamw": (curves.adamw_steps,),
    "matmul": (matrices.matrix_product,),
    "embedding": (matrices.embedding_lookup,),
    "softmax": (tokens.softmax_temperature,),
    "attention": (graphs.core_forward, attention.attention_one_head, attention.scale_by_root_d),
    "classifier": (matrices.bars_through_the_network,),
    "residual": (matrices.residual_gradient, blocks.block),
}  # fmt: skip
"""The pictures of each lesson, in the order in which they are shown."""


def svg(lesson: str, title: Words, lang: str) -> str:
    """Return the pictures of a lesson as one, each below its title."""
    whole = Canvas(lang)
    for picture in OF_LESSONS[lesson]:
        whole.text(4, whole.y + LINE, picture.title, bold=True)
        canvas = drawn(picture.scene(), lang)
        whole.put(canvas, 0, whole.y + LINE + 10)
        whole.y += LINE + 10 + canvas.y + GAP
    return whole.svg(title)
