"""Six numbers in row-major order, as 2 x 3 and as 3 x 2."""

from byhand.book.entries.contract import Entry

entry = Entry(
    stem="reshape",
    title_zh="重塑",
    meanings_zh={"x": "任意数组"},
    result_zh="按行主序排列的同一批元素",
    inputs={"x": [[1, 2, 3], [4, 5, 6]]},
    static={"shape": (3, 2)},
    result=[[1, 2], [3, 4], [5, 6]],
    d_result=[[1, 2], [3, 4], [5, 6]],
    gradients={"x": [[1, 2, 3], [4, 5, 6]]},
    note="The number 4 has flat offset 3 in both: 1 * 3 + 0 and 1 * 2 + 1.",
    note_zh="数 4 在两种形状下的偏移量都是 3：1 × 3 + 0 与 1 × 2 + 1。",
    place=("arrays", 4),
    torch="x.reshape(shape)",
    asked="view, torch.reshape, .view(B T C), flatten, squeeze, unsqueeze, contiguous, 改变形状, 重塑, 变形",
    notations=("(b T + t) C + c", "[B,T,V] -> [N,V]", "N = B T"),
)
