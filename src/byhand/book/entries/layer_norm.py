"""Deviations -7, -1, 1, 7 have variance 25, so every number is a fraction (with eps = 0)."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"x": [[1, 7, 9, 15]], "gain": [2, 1, 1, 1], "bias": [0, 0, 0, 1]},
    static={"eps": 0.0},
    result=[["-14/5", "-1/5", "1/5", "12/5"]],
    d_result=[[1, 0, 0, 0]],
    gradients={
        "x": [["13/125", "-16/125", "-9/125", "12/125"]],
        "gain": ["-7/5", 0, 0, 0],
        "bias": [1, 0, 0, 0],
    },
    note={
        "en": "The mean is 8 and the standard deviation 5. Shifting x changes nothing, so its gradient sums to 0.",
        "zh": "均值为 8，标准差为 5。把 x 整体平移不会改变结果，所以它的梯度之和为 0。",
    },
)
