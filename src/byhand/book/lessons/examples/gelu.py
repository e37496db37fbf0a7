"""GELU at -1, 0, 1 and 2, and its slope there."""

from byhand.book.lessons.examples.single import both_ways, single
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.equations.gelu import gelu


@listed(140, "GELU and its slope", "GELU 及其斜率")
def lesson(array: Maker) -> Content:
    """Values, then slopes (a cotangent of 1 everywhere)."""
    intro = Words(
        "GELU multiplies half of x by one plus a tanh. "
        "For large positive x this gate is open (y = x), for large negative x it is shut; at 0 the slope is one half.",
        "x 的一半乘以（1 加一个 tanh）。x 为很大的正数时门全开（y = x），为绝对值很大的负数时门全关；在 0 处斜率为二分之一。",
    )
    return single(intro, both_ways(gelu, "y", "x", [-1, 0, 1, 2], [1, 1, 1, 1], array))
