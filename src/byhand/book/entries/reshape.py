"""Six numbers in row-major order, as 2 x 3 and as 3 x 2."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"x": [[1, 2, 3], [4, 5, 6]]},
    static={"shape": (3, 2)},
    result=[[1, 2], [3, 4], [5, 6]],
    d_result=[[1, 2], [3, 4], [5, 6]],
    gradients={"x": [[1, 2, 3], [4, 5, 6]]},
    note={
        "en": "The number 4 has flat offset 3 in both: 1 * 3 + 0 and 1 * 2 + 1.",
        "zh": "数 4 在两种形状下的偏移量都是 3：1 × 3 + 0 与 1 × 2 + 1。",
    },
)
