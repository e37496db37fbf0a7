"""Equal scores in a window of two keys."""

from byhand.book.entries.contract import Entry

entry = Entry(
    stem="window_softmax",
    title_zh="滑动窗口 softmax",
    meanings_zh={"scores": "T 个查询对 S 个键的分数"},
    result_zh="注意力权重，每行之和为 1",
    inputs={"scores": [[0, 0, 0], [0, 0, 0], [0, 0, 0]]},
    static={"window": 2},
    result=[[1, 0, 0], ["1/2", "1/2", 0], [0, "1/2", "1/2"]],
    d_result=[[0, 0, 0], [0, 0, 0], [0, 1, 0]],
    gradients={"scores": [[0, 0, 0], [0, 0, 0], [0, "1/4", "-1/4"]]},
    note="The last query no longer sees the first key.",
    note_zh="最后一个查询不再看到第一个键。",
    place=("attention", 11),
    asked="sliding window attention, local attention, 局部注意力",
)
