"""The first query sees one value, the second a quarter of one and three quarters of the other."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, row_times_column, transposed
from byhand.book.words.language import Words
from byhand.engine.terms import Term, number, ratio, total


def _mix_untransposed(term: Term, at: Asked) -> Term | None:
    *_, queries, keys = at.inputs[0].shape
    return row_times_column(at.inputs[0], at.d, at.index) if at.slot == 1 and queries == keys else None


entry = Entry(
    stem="mix",
    title_zh="值的加权求和",
    meanings_zh={"weights": "注意力权重", "v": "值"},
    result_zh="每个查询得到的混合向量",
    inputs={"weights": [[[[1, 0], ["1/4", "3/4"]]]], "v": [[[[4, 0], [0, 8]]]]},
    result=[[[[4, 0], [1, 6]]]],
    d_result=[[[[1, 0], [0, 1]]]],
    gradients={"weights": [[[[4, 0], [0, 8]]]], "v": [[[[1, "1/4"], [0, "3/4"]]]]},
    note="Each result row lies between the value rows; a value's gradient has the same weights as the value had.",
    note_zh="结果的每一行都在各个值之间；值的梯度用同样的权重加权。",
    goal=Words(
        "Average the values with these weights.",
        "用这些权重对值求加权平均。",
    ),
    why=Words(
        "Each token collects values in proportion to its weights. "
        "The scores decided how much; here the content itself moves from token to token.",
        "每个词元按权重收集各词元的值。分数只决定取多少；到了这一步，内容本身才从一个词元传到另一个词元。",
    ),
    why_back=Words(
        "Y[t] adds up P[t,s] × V[s] over s. So ∂P[t,s] is the dot product of ∂Y[t] and V[s], and ∂V[s] adds up "
        "P[t,s] × ∂Y[t] over the rows t: two matrix products again.",
        "Y[t] 里有 P[t,s] × V[s]，所以 P[t,s] 的梯度是 ∂Y[t] 与 V[s] 的点积；V[s] 的梯度是各行 P[t,s] × ∂Y[t] 之和。"
        "写成矩阵，就是这两个公式。",
    ),
    place=("attention", 9),
    torch="weights @ v",
    asked="attn @ v, att @ v, context vector, average of the values, 上下文向量, 注意力输出",
    notations=(
        r"Y_i = \sum_j P_{i,j} V_j",
        "Output = Attention_Weights V",
        "Weights V",
        "dL/dV = Attention^T dL/dOutput",
        r"\sum_j P_{i,j} V_j",
    ),
    mistakes=(
        (
            "used the transposed weights",
            "用了转置的注意力权重",
            transposed(0),
            "return weights @ v,",
            "return namespace(v).matrix_transpose(weights) @ v,",
        ),
        (
            "averaged the values with equal weights",
            "对各个值取了等权平均",
            lambda term, at: ratio(total(part.parts[1] for part in term.parts), number(len(term.parts), "S")),
            "return weights @ v,",
            "return (0 * weights + 1 / weights.shape[-1]) @ v,",
        ),
    ),
    gradient_mistakes=(
        (
            "forgot to transpose the weights",
            "忘了把注意力权重转置",
            _mix_untransposed,
            "transpose(weights) @ d_y",
            "weights @ d_y",
        ),
        (
            "gave the weights no gradient",
            "没有给注意力权重梯度",
            None,
            "return d_y @ transpose(v),",
            "return 0 * d_y @ transpose(v),",
        ),
    ),
)
