"""Logarithms as scores make fractions of the weights; whatever the 9 above the diagonal is, it is not seen."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"scores": [[0, 9, 9], [0, "log(3)", 9], [0, "log(2)", "log(5)"]]},
    result=[[1, 0, 0], ["1/4", "3/4", 0], ["1/8", "1/4", "5/8"]],
    d_result=[[1, 1, 1], [1, 0, 0], [0, 0, 1]],
    gradients={"scores": [[0, 0, 0], ["3/16", "-3/16", 0], ["-5/64", "-5/32", "15/64"]]},
    note={
        "en": "Exponentials of the last row are 1, 2 and 5, with sum 8. Every row of the gradient sums to zero.",
        "zh": "最后一行取指数后是 1、2、5，和为 8。梯度的每一行之和都为零。",
    },
)
