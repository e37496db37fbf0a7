"""Cross-entropy of logits 2, 1, 0, -1 with target 1, and of two rows, whose losses are averaged."""

import numpy as np

from byhand.book.lessons.examples.single import both_ways, single
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.softmax import softmax


@listed(130, "Cross-entropy and its gradient", "交叉熵及其梯度")
def lesson(array: Maker) -> Content:
    """The probabilities, the loss, its gradient; then a mean over two rows."""
    row, target = [[2, 1, 0, -1]], Tensor(np.asarray([1]), name="y")
    rows, targets = [[0, "log(2)", "log(5)"], [0, 0, "log(2)"]], Tensor(np.asarray([2, 0]), name="y_2")
    intro = Words(
        "The loss is minus the logarithm of the probability of the actual next token. "
        "Its gradient is that probability minus one at the target, and the probability itself everywhere else, divided by the number of rows.",
        "损失是实际出现的词元的概率取负对数。梯度在目标处是概率减一，在其余各处就是概率本身，再除以行数。",
    )
    probabilities, (first, *_) = both_ways(softmax, "p", "z", row, [[0, 0, 0, 0]], array)
    return single(
        intro,
        (probabilities[:1], [first]),
        both_ways(cross_entropy, "L", "z", row, 1, array, target),
        both_ways(cross_entropy, "L_2", "z_2", rows, 1, array, targets),
    )
