"""Two heads of width 2, laid side by side for each position."""

from byhand.book.entries.contract import Entry
from byhand.book.words.language import Words

entry = Entry(
    stem="merge_heads",
    title_zh="合并多头",
    meanings_zh={"x": "每个头的输出"},
    result_zh="各头并排拼接",
    inputs={"x": [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]},
    result=[[[1, 2, 5, 6], [3, 4, 7, 8]]],
    d_result=[[[1, 2, 3, 4], [5, 6, 7, 8]]],
    gradients={"x": [[[[1, 2], [5, 6]], [[3, 4], [7, 8]]]]},
    note=(
        "Position 0 takes the first row of each head. The order in memory changes, so a reshape alone cannot do this."
    ),
    note_zh="位置 0 取每个头的第一行。数在内存中的次序改变了，所以只靠重塑做不到。",
    goal=Words(
        "Put the columns of all heads back side by side; with a single head there is nothing to do.",
        "把各个头的列重新并排放在一起；只有一个头时，本来就是这样。",
    ),
    why=Words(
        "No number changes, only its index: the next layer reads one row of C columns for each token.",
        "数值不变，只是下标变了：下一层为每个词元读取一行，共 C 列。",
    ),
    why_back=Words(
        "The numbers were only rearranged, so their gradients are put back in their old places.",
        "前向只是把数换了位置，反向就把梯度放回原处。",
    ),
    on_paper=(r"Y_{t,hD+d} = X^{(h)}_{t,d}", r"\partial X^{(h)}_{t,d} = \partial Y_{t,hD+d}"),
    one_head=(r"Y = X", r"\partial X = \partial Y"),
    place=("attention", 10),
    torch="x.transpose(1, 2).flatten(2)",
    asked="torch.cat, concatenate, 拼接, 合并各头",
    notations=("Concat(head_1, ..., head_h)",),
    mistakes=(
        (
            "interleaved the heads: column d H + h instead of h D + d",
            "各头交错：放到了第 d H + h 列，而不是第 h D + d 列",
            None,
            "namespace(x).permute_dims(x, (0, 2, 1, 3))",
            "namespace(x).permute_dims(x, (0, 2, 3, 1))",
        ),
        (
            "reshaped to (B, T, C) without moving axes",
            "没有交换轴就重塑成了 (B, T, C)",
            None,
            "namespace(x).permute_dims(x, (0, 2, 1, 3)).reshape",
            "x.reshape",
        ),
    ),
    gradient_mistakes=(
        (
            "reshaped to (B, heads, T, D) without moving axes",
            "没有交换轴就重塑成了 (B, 头, T, D)",
            None,
            "namespace(d_y).permute_dims(d_y.reshape((b, t, h, d)), (0, 2, 1, 3))",
            "d_y.reshape((b, h, t, d))",
        ),
    ),
)
