"""Softmax of logarithms, so that the weights are fractions; the same scores shifted; its derivative twice."""

from byhand.book.lessons.examples.single import both_ways, single
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.equations.softmax import softmax

SCORES = [0, "log(2)", "log(5)"]
SHIFTED = [1000, 1001, 999]


@listed(190, "Softmax and what its derivative removes", "Softmax，以及它的导数去掉了什么")
def lesson(array: Maker) -> Content:
    """Weights 1/8, 1/4, 5/8 and back; scores near 1000; and a cotangent that is the same everywhere."""
    intro = Words(
        "The scores are logarithms of 1, 2 and 5, so the weights are 1/8, 2/8 and 5/8. "
        "exp(1000) is larger than any float; with the maximum subtracted, the scores z_2 near 1000 are as harmless as z. "
        "A derivative that is the same for all weights (∂p_3) comes back as 0: they cannot all grow.",
        "分数是 1、2、5 的对数，所以权重是 1/8、2/8、5/8。exp(1000) 超出浮点数的范围；减去最大值之后，1000 附近的 z_2 就与 0 附近的数一样容易计算。"
        "若各个权重的导数都相同（∂p_3），传回的就是 0：权重不可能同时变大。",
    )
    z, d = "z", [8, 0, 0]
    shifted, (large, _) = both_ways(softmax, "p_2", "z_2", SHIFTED, d, array)
    equal, (_, back) = both_ways(softmax, "p_3", "z_3", SCORES, [3, 3, 3], array)
    return single(intro, both_ways(softmax, "p", z, SCORES, d, array), (shifted[:1], [large]), (equal, [back]))
