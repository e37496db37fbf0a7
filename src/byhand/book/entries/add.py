"""A row is added to both rows of a matrix."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import negated, nth

entry = Entry(
    stem="add",
    title_zh="加法",
    meanings_zh={"a": "第一个加数", "b": "第二个加数"},
    result_zh="和",
    inputs={"a": [[1, 2], [3, 4]], "b": [10, 20]},
    result=[[11, 22], [13, 24]],
    d_result=[[1, 2], [3, 4]],
    gradients={"a": [[1, 2], [3, 4]], "b": [4, 6]},
    note="b was used twice, so its gradient is the sum over both rows.",
    note_zh="b 用了两次，所以它的梯度是两行之和。",
    place=("arrays", 1),
    torch="torch.add(a, b)",
    asked="torch.add, elementwise sum, 逐元素相加, 相加",
    mistakes=(("subtracted", "做成了减法", nth(1, negated)),),
)
