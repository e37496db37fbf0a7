"""Logarithms as scores make fractions of the weights."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"x": [0, "log(2)", "log(5)"]},
    result=["1/8", "1/4", "5/8"],
    d_result=[8, 0, 0],
    gradients={"x": ["7/8", "-1/4", "-5/8"]},
    note={
        "en": "Raising one score takes weight from all the others, in proportion to what they have.",
        "zh": "提高一个分数，会按比例从其余各项那里取走权重。",
    },
)
