"""A row is added to both rows of a matrix."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"a": [[1, 2], [3, 4]], "b": [10, 20]},
    result=[[11, 22], [13, 24]],
    d_result=[[1, 2], [3, 4]],
    gradients={"a": [[1, 2], [3, 4]], "b": [4, 6]},
    note={
        "en": "b was used twice, so its gradient is the sum over both rows.",
        "zh": "b 用了两次，所以它的梯度是两行之和。",
    },
)
