"""A row scales both rows of a matrix."""

from byhand.book.entries.contract import Entry
from byhand.engine.terms import total

entry = Entry(
    stem="mul",
    title_zh="逐元素乘法",
    meanings_zh={"a": "第一个因子", "b": "第二个因子"},
    result_zh="积",
    inputs={"a": [[1, 2], [3, 4]], "b": [10, "1/2"]},
    result=[[10, 1], [30, 2]],
    d_result=[[1, 1], [1, 1]],
    gradients={"a": [[10, "1/2"], [10, "1/2"]], "b": [4, 6]},
    note="Each factor's gradient is the other factor; b was used twice, so its gradient is a sum.",
    note_zh="每个因子的梯度是另一个因子；b 用了两次，所以梯度要相加。",
    place=("arrays", 2),
    torch="torch.mul(a, b)",
    asked="torch.mul, elementwise product, 相乘",
    mistakes=(("added", "做成了加法", lambda term, at: total(term.parts)),),
)
