"""Two heads of width 2, laid side by side for each position."""

from byhand.book.entries.contract import Entry

entry = Entry(
    stem="merge_heads",
    title_zh="合并多头",
    meanings_zh={"x": "每个头的输出"},
    result_zh="各头并排拼接",
    inputs={"x": [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]},
    result=[[[1, 2, 5, 6], [3, 4, 7, 8]]],
    d_result=[[[1, 2, 3, 4], [5, 6, 7, 8]]],
    gradients={"x": [[[[1, 2], [5, 6]], [[3, 4], [7, 8]]]]},
    note="Position 0 takes the first row of each head. In memory the numbers move: this is no mere reshape.",
    note_zh="位置 0 取每个头的第一行。数在内存中的次序变了：这不只是一次变形。",
    place=("attention", 7),
    asked="torch.cat, concatenate, 拼接, 合并各头",
    notations=("Concat(head_1, ..., head_h)",),
)
