"""Rows become columns."""

from byhand.book.entries.contract import Entry

entry = Entry(
    stem="transpose",
    title_zh="转置",
    meanings_zh={"a": "矩阵"},
    result_zh="它的转置",
    inputs={"a": [[1, 2, 3], [4, 5, 6]]},
    result=[[1, 4], [2, 5], [3, 6]],
    d_result=[[1, 2], [3, 4], [5, 6]],
    gradients={"a": [[1, 3, 5], [2, 4, 6]]},
    note="The cotangent has the result's shape, 3 x 2; the gradient has the input's, 2 x 3.",
    note_zh="上游梯度的形状与结果相同，是 3 × 2；输入的梯度是 2 × 3。",
    place=("arrays", 5),
    torch="a.mT",
    asked="permute, swapaxes, movedim, torch.transpose, .mT, swap axes, 交换轴, 调换维度, 置换维度",
    gradient_mistakes=(
        (
            "gave a tied table no gradient from the head",
            "共用的词元表没有得到来自输出层的梯度",
            None,
            "namespace(d_y).matrix_transpose(d_y)",
            "0 * namespace(d_y).matrix_transpose(d_y)",
        ),
    ),
)
