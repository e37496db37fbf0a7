"""Token 2 occurs at two of three positions: its row is read twice and collects two gradients."""

import numpy as np

from byhand.book.lessons.examples.single import single, walked
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.add_positional import add_positional
from byhand.equations.embedding import embedding
from byhand.equations.matmul import matmul
from byhand.tracing.trace import Trace

TOKENS = [2, 1, 2]
W_TE, W_PE = [[3, -1], [1, 4], [2, 5], [-2, 1]], [["1/2", 0], [0, "1/2"], ["-1/2", 1]]
D_X = [[1, 2], [3, 4], [5, -6]]


@listed(180, "Embedding: from ids to vectors and back", "嵌入：从编号到向量，再传回梯度")
def lesson(array: Maker) -> Content:
    """Look up, add positions, propagate back; then compute the same rows as a product with one-hot rows."""
    intro = Words(
        "A vocabulary of 4, width 2. The ids 2, 1, 2 pick rows of the table, and each position adds its own row, so "
        "that the two copies of token 2 become different vectors. The last step makes the same rows with a matrix "
        "product: a one-hot row times the table. Looking up gives the same without the multiplications by 0.",
        "词表大小为 4，宽度为 2。编号 2、1、2 从表中取出对应的行，各个位置再加上自己的一行，于是两个词元 2 变成不同的向量。最后一步用矩阵乘法得到同样的行：独热行乘以表。"
        "查表省去了所有与 0 的相乘，结果相同。",
    )
    tokens = Tensor(np.asarray(TOKENS), name="tokens")
    table, positions = (Tensor(array(x), requires_grad=True, name=n) for n, x in (("W_te", W_TE), ("W_pe", W_PE)))
    trace = Trace.of(lambda: add_positional(embedding(table, tokens, name="E"), positions, name="X"))
    rows = Tensor(array([[int(v == token) for v in range(len(W_TE))] for token in TOKENS]), name="one-hot")
    product = Trace.of(lambda: matmul(rows, Tensor(array(W_TE), name="W_te"), name="E"))
    return single(intro, walked(trace, array(D_X)), (given(product), forward_steps(product)))
