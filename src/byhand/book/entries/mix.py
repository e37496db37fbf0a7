"""The first query sees one value, the second a quarter of one and three quarters of the other."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"weights": [[[[1, 0], ["1/4", "3/4"]]]], "v": [[[[4, 0], [0, 8]]]]},
    result=[[[[4, 0], [1, 6]]]],
    d_result=[[[[1, 0], [0, 1]]]],
    gradients={"weights": [[[[4, 0], [0, 8]]]], "v": [[[[1, "1/4"], [0, "3/4"]]]]},
    note={
        "en": "Each result row lies between the value rows; a value's gradient is weighted as the value was.",
        "zh": "结果的每一行都在各个值之间；值的梯度用同样的权重加权。",
    },
)
