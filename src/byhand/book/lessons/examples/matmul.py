"""A 2 x 3 matrix times a 3 x 2 one, forward and back; then three rows through one weight: its gradients add up."""

from byhand.book.lessons.examples.single import both_ways, single
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.linear import linear
from byhand.equations.matmul import matmul

A, B, D_Y = [[1, 2, 3], [4, 5, 6]], [[1, -1], [2, 1], [0, 3]], [[1, 2], [-1, 1]]
ROWS, W, BIAS, D_Z = [[1, 2], [3, -1], [2, 1]], [[2, 1], [1, 3]], [1, -1], [[1, 2], [-1, 1], [2, -1]]


@listed(
    170,
    "Matrix product: forward and backward, then one weight for many rows",
    "矩阵乘法：前向与反向，以及多行共用一个权重",
)
def lesson(array: Maker) -> Content:
    """The product alone, then as a linear layer with a bias."""
    intro = Words(
        "Rows times columns. In the backward pass each factor's gradient is again a matrix product, with the other "
        "factor transposed: that is the only arrangement whose shapes fit. A linear layer is such a product with "
        "one W for all rows.",
        "行乘以列。反向时，每个因子的梯度仍由矩阵乘法得到，用的是另一个因子的转置：只有这样排列，形状才对得上。线性层就是这样的乘积，所有行共用同一个 W。",
    )
    b = Tensor(array(B), requires_grad=True, name="B")
    w, bias = (Tensor(array(x), requires_grad=True, name=n) for n, x in (("W", W), ("b", BIAS)))
    return single(
        intro,
        both_ways(matmul, "Y", "A", A, D_Y, array, b),
        both_ways(linear, "Z", "X", ROWS, D_Z, array, w, bias),
    )
