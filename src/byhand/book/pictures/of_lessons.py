"""The pictures of each lesson, and all of a lesson's as one."""

from __future__ import annotations

from byhand.book.pictures.canvas import GAP, LINE, Canvas
from byhand.book.pictures.picture import PICTURES, Picture, drawn
from byhand.book.words.language import Words

OF_LESSONS = {
    "nudges": ("six-nodes",),
    "paper-gpt": ("gpt-in-a-minute", "attention-one-head", "training-loop", "block", "layer-norm-removes"),
    "matrix-core": ("core-forward", "core-backward"),
    "matrix-core-rows": ("core-forward", "core-backward"),
    "matrix-core-exercise": ("core-backward",),
    "post-norm": ("post-norm-block",),
    "attention-index": ("memory-heads", "attention-two-heads"),
    "memory-layout": ("memory-rows", "memory-batch", "memory-heads"),
    "multi-head": ("attention-two-heads",),
    "kv-cache": ("cache-growing",),
    "rotary": ("rotary-turns",),
    "bpe": ("merges",),
    "sampling": ("softmax-temperature", "softmax-top-k", "softmax-top-p"),
    "cross-entropy": ("cross-entropy-curve",),
    "gelu": ("gelu-relu", "gelu-relu-slopes"),
    "layer-norm": ("layer-norm-removes",),
    "adamw": ("adamw-steps",),
    "matmul": ("matrix-product",),
    "embedding": ("embedding-lookup",),
    "softmax": ("softmax-temperature",),
    "attention": ("core-forward", "attention-one-head", "scale-by-root-d"),
    "classifier": ("bars-through-the-network",),
    "residual": ("residual-gradient", "block"),
}
"""The pictures of each lesson, by name, in the order in which they are shown."""


def pictures(lesson: str) -> list[Picture]:
    """Return the pictures of a lesson."""
    return [PICTURES[name] for name in OF_LESSONS[lesson]]


def svg(lesson: str, title: Words, lang: str) -> str:
    """Return the pictures of a lesson as one, each below its title."""
    whole = Canvas(lang)
    for picture in pictures(lesson):
        whole.text(4, whole.y + LINE, picture.title, bold=True)
        canvas = drawn(picture.scene(), lang)
        whole.put(canvas, 0, whole.y + LINE + 10)
        whole.y += LINE + 10 + canvas.y + GAP
    return whole.svg(title)
