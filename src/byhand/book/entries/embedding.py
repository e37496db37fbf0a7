"""A token that occurs twice: its row is read twice, and collects two gradients."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"table": [[0, 0], [1, 0], [0, 1], [1, 1]], "tokens": [[2, 1, 2]]},
    result=[[[0, 1], [1, 0], [0, 1]]],
    d_result=[[[1, 2], [3, 4], [5, 6]]],
    gradients={"table": [[0, 0], [3, 4], [6, 8], [0, 0]]},
    note={
        "en": "Token 2 stands at two positions, so its row collects both cotangents; unused rows get zero.",
        "zh": "词元 2 出现了两次，所以它那一行累加两份梯度；没有用到的行梯度为零。",
    },
)
