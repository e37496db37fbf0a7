"""Two positions of one pair, turned by whole steps."""

from byhand.book.entries.contract import Entry

entry = Entry(
    stem="rotary",
    title_zh="旋转位置编码（RoPE）",
    meanings_zh={"x": "查询或键", "start": "第一个位置之前的位置数，不给则为 0"},
    result_zh="旋转后的查询或键",
    inputs={"x": [[1, 0], [1, 0]]},
    static={"base": 10000.0, "width": 2},
    result=[[1, 0], ["cos(1)", "sin(1)"]],
    d_result=[[1, 0], [1, 0]],
    gradients={"x": [[1, 0], ["cos(1)", "-sin(1)"]]},
    note="Position 0 is not turned; position 1 by one radian.",
    note_zh="位置 0 不旋转，位置 1 旋转一弧度。",
    place=("attention", 9),
    asked="rope, apply_rotary_pos_emb, rotate_half",
)
