"""Logarithms as scores make fractions of the weights."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, Slips, negated
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, product, ratio, total
from byhand.equations.softmax import softmax_terms


def _shares(term: Term, at: Asked) -> Term | None:
    row = total(at.along(-1, "x"))
    return ratio(at.read(0, "x"), row) if row.value else None


def _own_weight_only(term: Term, at: Asked) -> Term:
    p, (d, _) = term.parts[0], term.parts[1].parts
    return product((p, total((number(1), negated(p, at))), d))


OWN_WEIGHT_ONLY: Slips = (
    ("used p(1 − p) d only: the other weights move too", "只用了 p(1 − p) d：其余权重也会变", _own_weight_only),
)


def first_sources(inputs, of):
    """Return whether an index is the result's own."""
    return lambda index: index[-1] == of[-1]


def exponentials(inputs, result):
    """Return the exponentials and their sums."""
    import numpy as np  # `where` reads this file without it

    (x,) = inputs
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return (r"e^{x_{t,i} - m_t}", e), (r"\textstyle\sum_j e^{x_{t,j} - m_t}", e.sum(axis=-1, keepdims=True))


entry = Entry(
    stem="softmax",
    title_zh="Softmax",
    meanings_zh={"x": "分数或 logits"},
    result_zh="权重，每行之和为 1",
    inputs={"x": [0, "log(2)", "log(5)"]},
    result=["1/8", "1/4", "5/8"],
    d_result=[8, 0, 0],
    gradients={"x": ["7/8", "-1/4", "-5/8"]},
    note="Raising one score takes weight from all the others, in proportion to their weights.",
    note_zh="提高一个分数，其余各项的权重按比例减小。",
    goal=Words(
        "Turn scores into positive weights that sum to 1.",
        "把分数变成和为 1 的正权重。",
    ),
    why=Words(
        "exp makes each score positive and keeps their order; dividing by the sum turns them into fractions of the whole. "
        "Subtracting the maximum m divides numerator and denominator by the same number, and keeps exp from growing too large for the machine.",
        "exp 使每个分数变为正数且保持大小顺序；再除以总和，就成为各自的份额。减去最大值 m 相当于分子、分母同除以一个数，可避免 exp 的结果大到计算机存不下。",
    ),
    why_back=Words(
        "The weights always sum to 1, so one can gain only what the others lose. "
        "That is why the weighted mean of ∂p is subtracted.",
        "权重之和恒为 1，一项增加多少，其余各项合起来就减少多少，所以要减去 ∂p 的加权平均。",
    ),
    on_paper=(
        r"p_{t,i} = \frac{e^{x_{t,i} - m_t}}{\sum_j e^{x_{t,j} - m_t}}, \quad m_t = \max_j x_{t,j}",
        r"\partial x_{t,i} = p_{t,i} \left( \partial p_{t,i} - \sum_j \partial p_{t,j}\, p_{t,j} \right)",
    ),
    on_the_way=exponentials,
    place=("attention", 8),
    torch="F.softmax(x, dim=-1)",
    asked=(
        "F.softmax, nn.Softmax, torch.softmax, subtract the max, subtract the maximum, why subtract the max, "
        "exponential overflow, scores to probabilities, 减去最大值, 为什么减最大值, 溢出, 指数溢出, 概率归一化"
    ),
    notations=(
        "exp(x) / sum exp(x)",
        "softmax(x)",
        r"p_v = \mathrm{softmax}(z)_v",
        r"\frac{e^{z_i}}{\sum_j e^{z_j}}",
    ),
    mistakes=(
        (
            "took the softmax over the wrong axis",
            "softmax 的轴错了",
            lambda term, at: softmax_terms(at.along(-2, "x"), at.index[-2]) if len(at.index) > 1 else None,
        ),
        ("forgot to divide by the sum", "忘了除以总和", lambda term, at: function("exp", at.read(0, "x"))),
        ("divided the scores themselves by their sum", "没有取指数，直接除以总和", _shares),
        (
            "did not subtract the maximum",
            "没有减去最大值",
            None,
            "xp.exp(x - xp.where(m == -xp.inf, xp.zeros_like(m), m))",
            "xp.exp(x)",
        ),
    ),
    gradient_mistakes=OWN_WEIGHT_ONLY,
    first_sources=first_sources,
)
