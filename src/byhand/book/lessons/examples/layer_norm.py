"""LayerNorm of four columns, which show its derivative, and of two, which hide it."""

from byhand.book.lessons.examples.single import both_ways, single
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.equations.layer_norm import layer_norm


@listed(150, "LayerNorm and what its derivative removes", "层归一化，以及它的导数去掉了什么")
def lesson(array: Maker) -> Content:
    """Four columns without eps, so that the numbers are fractions; then two columns with it."""
    intro = Words(
        "With four columns, 1, 7, 9 and 15 have mean 8 and standard deviation 5. "
        "With two columns the result is always minus one and plus one, so hardly any gradient gets through: "
        "such an example cannot tell a right derivative from a wrong one.",
        "四列 1、7、9、15 的均值为 8，标准差为 5。两列时结果总是负一与正一，几乎没有梯度能通过：这样的例子分不出导数的对错。",
    )
    parts = [
        both_ways(layer_norm, "y", "x", [[1, 7, 9, 15]], [[1, 0, 0, 0]], array, eps=0.0),
        both_ways(layer_norm, "y_2", "x_2", [["1/10", 1]], [[1, 0]], array, eps=ModelConfig.norm_eps),
    ]
    return single(intro, *parts)
