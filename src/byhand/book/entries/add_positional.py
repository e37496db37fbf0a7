"""Two sequences share one table of positions; the third row is not used."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={
        "e": [[[0, 1], [1, 0]], [[1, 1], [0, 0]]],
        "table": [["1/10", 0], [0, "1/10"], ["1/10", "1/10"]],
        "start": 0,
    },
    result=[[["1/10", 1], [1, "1/10"]], [["11/10", 1], [0, "1/10"]]],
    d_result=[[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    gradients={
        "e": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        "table": [[6, 8], [10, 12], [0, 0]],
    },
    note={
        "en": "Both sequences of the batch use the same rows, so the table's gradient is summed over the batch.",
        "zh": "批次中的两个序列共用同样的行，所以位置表的梯度要对批次求和。",
    },
)
