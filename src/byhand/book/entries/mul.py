"""A row scales both rows of a matrix."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"a": [[1, 2], [3, 4]], "b": [10, "1/2"]},
    result=[[10, 1], [30, 2]],
    d_result=[[1, 1], [1, 1]],
    gradients={"a": [[10, "1/2"], [10, "1/2"]], "b": [4, 6]},
    note={
        "en": "Each factor's gradient is the other factor; b was used twice, so its gradient is a sum.",
        "zh": "每个因子的梯度是另一个因子；b 用了两次，所以梯度要相加。",
    },
)
