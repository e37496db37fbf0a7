"""Logarithms as scores make fractions of the weights; no query sees the 9 above the diagonal."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.softmax import OWN_WEIGHT_ONLY
from byhand.book.practice.edits import Asked
from byhand.book.words.language import Note, Words
from byhand.engine.terms import Term, function, number
from byhand.equations.causal_softmax import seen
from byhand.equations.softmax import softmax_terms

BEFORE_ZH = "每条文本在第一个查询之前已有的位置数；给出时，键存放在缓存中"


def remarks(en, zh):
    """Return the remark about a masked weight, and about a score's zero gradient; `en` and `zh` say why it is masked.

    A score has no gradient if it is masked, or is its query's only one.
    """

    def masked(index):
        t, s = index[-2:]
        return Note(
            f"masked: {en.format(t=t, s=s)}: the weight is exactly 0, and the score goes unused.",
            f"已被遮住：{zh.format(t=t, s=s)}。权重恰好为 0，分数没有被用到。",
            "masked",
            {"query": t, "key": s},
        )

    def remark(term, index):
        return masked(index) if term.label == "masked" else None

    def why_zero(inputs, slot, index, window=None):
        keys = seen(inputs, index, window)
        if index[-1] not in keys:
            return masked(index)
        only = Words(
            f"zero: query {index[-2]} sees one key only, whose weight is 1 whatever the score.",
            f"为零：查询 {index[-2]} 只能看到一个键，无论分数是多少，权重总是 1。",
        )
        return only if len(keys) == 1 else None

    return {"remark": remark, "why_zero": why_zero}


def _over_queries(term: Term, at: Asked) -> Term:
    *_, query, key = at.index
    n_queries, n_keys = at.inputs[0].shape[-2:]
    earliest = max(0, key + n_queries - n_keys)  # the first query that sees this key
    return term if term.label == "masked" else softmax_terms(at.along(-2, "S")[earliest:], query - earliest)


def _zero_for_masked(term: Term, at: Asked) -> Term:
    *_, key = at.index
    keys = seen(at.inputs, at.index)
    row = at.along(-1, "S")
    return softmax_terms([x if s in keys else number(0, "masked") for s, x in enumerate(row)], key)


def exponentials(inputs, result):
    """Return the exponentials over the keys that a query sees, 0 for masked ones, and their sums."""
    import numpy as np  # `where` reads this file without it

    scores, seen = np.where(result == 0, -np.inf, inputs[0]), result != 0
    e = np.where(seen, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0.0)
    return (r"e^{S_{t,s} - m_t}", e), (r"\textstyle\sum_{s \le t} e^{S_{t,s} - m_t}", e.sum(axis=-1, keepdims=True))


entry = Entry(
    stem="causal_softmax",
    title_zh="因果 softmax",
    meanings_zh={"scores": "T 个查询对 S 个键的分数", "start": BEFORE_ZH},
    result_zh="注意力权重，每行之和为 1",
    inputs={"scores": [[0, 9, 9], [0, "log(3)", 9], [0, "log(2)", "log(5)"]]},
    result=[[1, 0, 0], ["1/4", "3/4", 0], ["1/8", "1/4", "5/8"]],
    d_result=[[1, 1, 1], [1, 0, 0], [0, 0, 1]],
    gradients={"scores": [[0, 0, 0], ["3/16", "-3/16", 0], ["-5/64", "-5/32", "15/64"]]},
    note="Exponentials of the last row are 1, 2 and 5, with sum 8. Every row of the gradient sums to zero.",
    note_zh="最后一行取指数后是 1、2、5，和为 8。梯度的每一行之和都为零。",
    goal=Words(
        "Turn each row of scores into weights that sum to 1, over this token and the earlier ones.",
        "把每行分数变成和为 1 的权重，只分给当前词元与它之前的词元。",
    ),
    why=Words(
        "The model learns to predict the next token and must not see it, so later keys get weight 0. "
        "Subtracting the maximum m changes no weight and keeps exp from growing too large.",
        "模型要学会预测下一个词元，因此不能看到它：后面的键权重为 0。减去最大值 m 不改变权重，只是避免 exp 的结果大到计算机存不下。",
    ),
    why_back=Words(
        "The weights of a row always sum to 1, so one can gain only what the others lose. "
        "That is why the weighted mean of ∂P is subtracted. A masked score changes no weight.",
        "一行权重之和恒为 1，一项增加多少，其余各项合起来就减少多少，所以要减去 ∂P 的加权平均。被遮住的分数不改变任何权重。",
    ),
    on_paper=(
        r"P_{t,s} = \begin{cases} \frac{e^{S_{t,s} - m_t}}{\sum_{j \le t} e^{S_{t,j} - m_t}} & s \le t \\ "
        r"0 & s > t \end{cases}, \quad m_t = \max_{j \le t} S_{t,j}",
        r"\partial S_{t,s} = P_{t,s} \left( \partial P_{t,s} - \sum_j \partial P_{t,j}\, P_{t,j} \right)",
    ),
    on_the_way=exponentials,
    place=("attention", 6),
    torch="F.softmax(scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf), dim=-1)",
    asked=(
        "tril, triu, masked_fill, float('-inf'), attn_mask, attention_mask, is_causal, lower triangular matrix, "
        "mask buffer, bias buffer, register_buffer, cannot see the future, attn_weights, attn_probs, "
        "attention map, 下三角矩阵, 下三角掩码, 上三角, 看不到未来, 注意力掩码, 注意力图"
    ),
    labels_zh={"masked": "被遮住"},
    notations=(
        r"P_i = \mathrm{softmax}(S_i)",
        r"mask(i, j) = \begin{cases} 0 & j \le i \\ -\infty & j > i \end{cases}",
        r"S_{i,j} = -\infty",
        "if j > i: s = -1e9",
    ),
    **remarks("query {t} must not see key {s}", "查询 {t} 不能看到其后的键 {s}"),
    mistakes=(
        (
            "forgot the mask",
            "忘了因果掩码",
            lambda term, at: softmax_terms(at.along(-1, "S"), at.index[-1]),
            "xp.where(visible(scores, start), scores, -xp.inf)",
            "scores",
        ),
        (
            "took the softmax over the queries (the wrong axis)",
            "softmax 沿查询方向（轴错了）",
            _over_queries,
            "p, _ = softmax.forward(xp.where(visible(scores, start), scores, -xp.inf))",
            "p = xp.matrix_transpose(softmax.forward(xp.matrix_transpose(xp.where(visible(scores, start), scores, -xp.inf)))[0])",
        ),
        (
            "forgot to divide by the sum",
            "忘了除以总和",
            lambda term, at: term if term.label == "masked" else function("exp", at.read(0, "S")),
            "p, _ = softmax.forward(xp.where(visible(scores, start), scores, -xp.inf))",
            "p = xp.where(visible(scores, start), scores, -xp.inf)\n    p = xp.exp(p - xp.max(p, axis=-1, keepdims=True))",
        ),
        (
            "set masked scores to 0 instead of −∞",
            "掩码处置成了 0，而不是 −∞",
            _zero_for_masked,
            "scores, -xp.inf)",
            "scores, 0 * scores)",
        ),
        (
            "masked after the softmax, so that rows do not sum to 1",
            "softmax 之后才加掩码，各行之和不再是 1",
            None,
            "p, _ = softmax.forward(xp.where(visible(scores, start), scores, -xp.inf))",
            "p = xp.where(visible(scores, start), softmax.forward(scores)[0], 0 * scores)",
        ),
        (
            "hid a position from itself (s < t), but for the first",
            "掩掉了位置自身（s < t），首位除外",
            None,
            "xp.where(visible(scores, start),",
            "xp.where(xp.tril(visible(scores, start), k=-1) | (xp.arange(scores.shape[-2])[:, None] + xp.arange(scores.shape[-1]) == 0),",
        ),
        (
            "let each position see the next (s ≤ t + 1)",
            "让每个位置看到了下一个（s ≤ t + 1）",
            None,
            "xp.where(visible(scores, start),",
            "xp.where(xp.tril(0 * scores + 1, k=1) > 0,",
        ),
        (
            "hid the past instead of the future",
            "掩掉了过去，而不是未来",
            None,
            "xp.where(visible(scores, start),",
            "xp.where(xp.matrix_transpose(visible(scores, start)),",
        ),
    ),
    gradient_mistakes=(
        (*OWN_WEIGHT_ONLY[0][:3], "(d_s,) = softmax.vjp(saved[:1], d_p)", "d_s = saved[0] * (1 - saved[0]) * d_p"),
        (
            "forgot to subtract the sum",
            "忘了减去总和",
            None,
            "(d_s,) = softmax.vjp(saved[:1], d_p)",
            "d_s = saved[0] * d_p",
        ),
        (
            "passed the gradient on as if softmax were linear",
            "把 softmax 当成线性的，原样传回了梯度",
            None,
            "(d_s,) = softmax.vjp(saved[:1], d_p)",
            "d_s = d_p * (saved[0] > 0)",
        ),
    ),
)
