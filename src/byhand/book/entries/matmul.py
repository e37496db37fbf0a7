"""A matrix times the swap of two columns."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"a": [[1, 2], [3, 4]], "b": [[0, 1], [1, 0]]},
    result=[[2, 1], [4, 3]],
    d_result=[[1, 0], [0, 1]],
    gradients={"a": [[0, 1], [1, 0]], "b": [[1, 3], [2, 4]]},
    note={
        "en": "With the identity as cotangent, the gradients are the transposes of the other factors.",
        "zh": "当传回的梯度是单位矩阵时，每个因子的梯度就是另一个因子的转置。",
    },
)
