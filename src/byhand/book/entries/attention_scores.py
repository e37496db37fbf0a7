"""Head width 4, so that the square root is 2."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={
        "q": [[[[1, 0, 1, 0], [0, 2, 0, 2]]]],
        "k": [[[[1, 1, 1, 1], [4, 0, 2, 1]]]],
    },
    result=[[[[1, 3], [2, 1]]]],
    d_result=[[[[1, 0], [0, 1]]]],
    gradients={
        "q": [[[["1/2", "1/2", "1/2", "1/2"], [2, 0, 1, "1/2"]]]],
        "k": [[[["1/2", 0, "1/2", 0], [0, 1, 0, 1]]]],
    },
    note={
        "en": "The dot product of query 0 and key 1 is 4 + 2 = 6; divided by 2 it is 3.",
        "zh": "查询 0 与键 1 的点积是 4 + 2 = 6，除以 2 得 3。",
    },
)
