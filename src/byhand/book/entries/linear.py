"""Two rows through a 2 x 3 weight with a bias."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.catalogue import slips
from byhand.book.practice.edits import Asked, row_times_column, transposed, without
from byhand.book.words.language import Words
from byhand.engine.terms import Term, number, ratio


def _linear_untransposed(term: Term, at: Asked) -> Term | None:
    x, weight, *_ = at.inputs
    x, d = x.reshape(-1, x.shape[-1]), at.d.reshape(-1, weight.shape[1])
    left, right, square = (at.d, weight, weight) if at.slot == 0 else (x, d, x)
    return row_times_column(left, right, at.index) if at.slot < 2 and square.shape[0] == square.shape[1] else None


def _mean_over_rows(term: Term, at: Asked) -> Term | None:
    rows = at.inputs[0].size // at.inputs[0].shape[-1]
    return ratio(term, number(rows, "N")) if at.slot and rows > 1 else None


entry = Entry(
    stem="linear",
    title_zh="线性层",
    meanings_zh={"x": "各行向量", "weight": "权重，按 [输入, 输出] 排列", "bias": "偏置，可省略"},
    result_zh="各行的结果",
    inputs={"x": [[1, 2], [3, 4]], "weight": [[1, 0, 1], [0, 1, 1]], "bias": ["1/2", 0, -1]},
    result=[["3/2", 2, 2], ["7/2", 4, 6]],
    d_result=[[1, 0, 0], [0, 1, 1]],
    gradients={"x": [[1, 0], [1, 2]], "weight": [[1, 3, 3], [2, 4, 4]], "bias": [1, 1, 1]},
    note="The weight's gradient is a sum over rows: each row of x is multiplied by the same row of the cotangent.",
    note_zh="权重的梯度对各行求和：x 的每一行与上游梯度的同一行相乘。",
    goal=Words(
        "Combine the columns of each row with learned weights.",
        "用学到的权重组合每一行中的数。",
    ),
    why=Words(
        "Each result is the dot product of a row of x with a column of W; it is large when both point in similar directions. "
        "All tokens share W.",
        "每个结果都是一行与 W 的一列的点积，行与列方向越接近，结果越大。所有词元共用同一个 W。",
    ),
    why_back_of={
        "x": Words(
            "x[t,i] (row t, column i) is multiplied by W[i,j] in y[t,j], for every column j of its row. "
            "So ∂x[t,i] adds up ∂y[t,j] × W[i,j] over j.",
            "第 t 行第 i 列的 x[t,i]，在同一行每一列 j 的结果 y[t,j] 中都与 W[i,j] 相乘；把各列的 ∂y[t,j] × W[i,j] 加起来，就是 ∂x[t,i]。",
        ),
        "weight": Words(
            "Every row t uses the same W[i,j], times x[t,i], so ∂W[i,j] adds up x[t,i] × ∂y[t,j] over the rows.",
            "每一行 t 都用同一个 W[i,j] 去乘 x[t,i]；把各行的 x[t,i] × ∂y[t,j] 加起来，就是 ∂W[i,j]。",
        ),
        "bias": Words(
            "Every row adds the same b[j], so ∂b[j] adds up ∂y[t,j] over the rows.",
            "每一行都加上同一个 b[j]；把各行的 ∂y[t,j] 加起来，就是 ∂b[j]。",
        ),
    },
    why_back_of_row={
        "x": Words(
            "x[i] is multiplied by W[i,j] in every result j, so ∂x[i] adds up ∂y[j] × W[i,j] over j.",
            "x[i] 在每个结果 j 中都与 W[i,j] 相乘；把各个 j 的 ∂y[j] × W[i,j] 加起来，就是 ∂x[i]。",
        ),
        "weight": Words(
            "W[i,j] is multiplied by x[i] in y[j], so ∂W[i,j] = x[i] × ∂y[j].",
            "在 y[j] 中，W[i,j] 与 x[i] 相乘，所以 ∂W[i,j] = x[i] × ∂y[j]。",
        ),
        "bias": Words(
            "b[j] is added once in y[j], so ∂b[j] = ∂y[j].", "b[j] 在 y[j] 中加了一次，所以 ∂b[j] = ∂y[j]。"
        ),
    },
    on_paper=(
        "y = x W + b",
        r"\partial x = \partial y\, W^{\top}, \quad \partial W = x^{\top} \partial y, \quad "
        r"\partial b = \sum_t \partial y_t",
    ),
    without=((" + b", ""),),
    place=("stream", 3),
    torch="F.linear(x, weight.T, bias)",
    asked=(
        "nn.Linear, F.linear, Conv1D, addmm, c_proj, out_proj, o_proj, weights and bias, bias term, why a bias, "
        "偏置, 权重矩阵"
    ),
    notations=(
        "X W + b",
        r"O = F W_{out} + b_{out}",
        r"Z = X_n W_{lm} + b_{lm}",
        r"Z = \mathrm{LN}(X) W_{lm} + b_{lm}",
        r"logits = \mathrm{LN}(X) W_{lm} + b_{lm}",
        r"A = Y W_{proj} + b_{proj}",
        "A = Y W_o + b_o",
        "Q = X W_Q",
        "K = X W_K",
        "V = X W_V",
        "dL/dW = X^T dL/dY",
        "dL/dW_V = X^T dL/dV",
        r"M W_{fc} + b_{fc}",
        r"\mathrm{GELU}(M W_{fc} + b_{fc})",
    ),
    mistakes=slips("linear.forward", no_bias=without(2), transposed_weight=transposed(1)),
    gradient_mistakes=slips("linear.vjp", untransposed=_linear_untransposed, mean_over_rows=_mean_over_rows),
)
