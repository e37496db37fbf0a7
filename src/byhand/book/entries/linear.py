"""Two rows through a 2 x 3 weight with a bias."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"x": [[1, 2], [3, 4]], "weight": [[1, 0, 1], [0, 1, 1]], "bias": ["1/2", 0, -1]},
    result=[["3/2", 2, 2], ["7/2", 4, 6]],
    d_result=[[1, 0, 0], [0, 1, 1]],
    gradients={"x": [[1, 0], [1, 2]], "weight": [[1, 3, 3], [2, 4, 4]], "bias": [1, 1, 1]},
    note={
        "en": "The weight's gradient is a sum over rows: each row of x meets its own row of the cotangent.",
        "zh": "权重的梯度对各行求和：x 的每一行与对应的那一行梯度相乘。",
    },
)
