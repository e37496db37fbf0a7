"""The two largest of four logits stay."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"logits": [2, 1, 0, -1]},
    static={"k": 2},
    result=[2, 1, "-inf", "-inf"],
    d_result=[1, 2, 3, 4],
    gradients={"logits": [1, 2, 0, 0]},
    note={
        "en": "What is dropped gets minus infinity: its probability is exactly zero, and so is its gradient.",
        "zh": "被去掉的变成负无穷：概率恰好为零，梯度也为零。",
    },
)
