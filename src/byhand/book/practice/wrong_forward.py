"""Typical mistakes on the way forward, by equation: edits of the term of one element of the (first) result."""

from __future__ import annotations

from byhand.book.practice.edits import (
    Asked,
    Slips,
    first,
    negated,
    nth,
    of_input,
    other_row,
    over,
    rest,
    swapped,
    transposed,
    within,
    without,
)
from byhand.engine.terms import Term, function, number, product, ratio, total
from byhand.equations import attention_scores
from byhand.equations.softmax import softmax_terms

# -- layer_norm


def _by_one_less(variance: Term, at: Asked) -> Term | None:
    above, count = variance.parts
    return ratio(above, number(count.value - 1, "C − 1"), "var") if count.value > 1 else None


# -- matmul


def _element_by_element(term: Term, at: Asked) -> Term | None:
    a, b = at.inputs
    return product((at.read(0, "A"), at.read(1, "B"))) if a.shape == b.shape else None


# -- attention_scores


def _mixed_up(term: Term, at: Asked) -> Term | None:
    q, k = at.inputs
    return attention_scores.terms(swapped(at.index), at.inputs, None) if q.shape == k.shape else None


# -- causal_softmax


def _over_queries(term: Term, at: Asked) -> Term:
    *_, query, key = at.index
    n_queries, n_keys = at.inputs[0].shape[-2:]
    earliest = max(0, key + n_queries - n_keys)  # the first query that sees this key
    return term if term.label == "masked" else softmax_terms(at.along(-2, "S")[earliest:], query - earliest)


def _zero_for_masked(term: Term, at: Asked) -> Term:
    *_, query, key = at.index
    n_queries, n_keys = at.inputs[0].shape[-2:]
    visible = query + n_keys - n_queries + 1
    row = at.along(-1, "S")[:visible]
    return softmax_terms([*row, *[number(0, "masked")] * (n_keys - visible)], key)


# -- softmax


def _shares(term: Term, at: Asked) -> Term | None:
    row = total(at.along(-1, "x"))
    return ratio(at.read(0, "x"), row) if row.value else None


# -- cross_entropy


def _probabilities(term: Term, at: Asked) -> Term:
    losses, count = term.parts
    return ratio(total(function("exp", negated(loss, at)) for loss in losses.parts), count)


# -- adamw

_undecayed = within(lambda decay, at: number(0), "wd")


def _coupled(term: Term, at: Asked) -> Term | None:
    decay = product((number(at.static["weight_decay"], "wd"), at.read(0, "theta")))
    kept = _undecayed(term, at)
    return kept and of_input(1, lambda g, at: total((g, decay)))(kept, at)


# -- temperature


def _minus_tau(term: Term, at: Asked) -> Term:
    z, tau = term.parts
    return total((z, negated(tau, at)))


FORWARD: dict[str, Slips] = {
    "embedding": (
        ("took the row of the next id", "取成了下一个编号的行", other_row(0, 1)),
        ("counted rows from 1", "行号从 1 数起了", other_row(0, -1)),
    ),
    "add_positional": (
        ("forgot the position", "忘了加位置嵌入", without(1)),
        ("took the position's row one further", "位置嵌入取成了下一行", other_row(1, 1)),
    ),
    "layer_norm": (
        ("divided by the variance instead of its root", "除以了方差，而不是标准差", within(nth(1, first), "xhat")),
        ("divided the variance by C − 1 instead of C", "方差除以了 C − 1，而不是 C", within(_by_one_less, "var")),
        ("forgot to subtract the mean", "忘了减去均值", within(nth(0, first), "xhat")),
        ("only subtracted the mean", "只减了均值", within(first, "xhat")),
    ),
    "residual": (
        ("forgot the stream", "忘了加上残差流", without(0)),
        ("forgot the sublayer", "忘了加上子层的输出", without(1)),
    ),
    "linear": (
        ("forgot the bias", "忘了加偏置", without(2)),
        ("used the transposed weight", "用了转置的权重", transposed(1)),
    ),
    "matmul": (
        ("used the transposed right factor", "右边的矩阵用成了转置", transposed(1)),
        ("multiplied element by element", "按元素相乘了", _element_by_element),
    ),
    "attention_scores": (
        ("forgot √D", "忘了除以 √D", first),
        ("divided by D instead of √D", "除以了 D，而不是 √D", nth(1, first)),
        ("multiplied by √D", "乘以了 √D", lambda term, at: product(term.parts)),
        ("mixed up query and key", "把查询与键弄反了", _mixed_up),
    ),
    "causal_softmax": (
        ("forgot the mask", "忘了因果掩码", lambda term, at: softmax_terms(at.along(-1, "S"), at.index[-1])),
        ("took the softmax over the queries (the wrong axis)", "softmax 沿查询方向（轴错了）", _over_queries),
        (
            "forgot to divide by the sum",
            "忘了除以总和",
            lambda term, at: term if term.label == "masked" else function("exp", at.read(0, "S")),
        ),
        ("set masked scores to 0 instead of −∞", "掩码处置成了 0，而不是 −∞", _zero_for_masked),
    ),
    "softmax": (
        (
            "took the softmax over the wrong axis",
            "softmax 的轴错了",
            lambda term, at: softmax_terms(at.along(-2, "x"), at.index[-2]) if len(at.index) > 1 else None,
        ),
        ("forgot to divide by the sum", "忘了除以总和", lambda term, at: function("exp", at.read(0, "x"))),
        ("divided the scores themselves by their sum", "没有取指数，直接除以总和", _shares),
    ),
    "mix": (
        ("used the transposed weights", "用了转置的注意力权重", transposed(0)),
        (
            "averaged the values with equal weights",
            "对各个值取了等权平均",
            lambda term, at: ratio(total(part.parts[1] for part in term.parts), number(len(term.parts), "S")),
        ),
    ),
    "gelu": (
        ("used ReLU", "用成了 ReLU", lambda term, at: function("positive", at.read(0, "x"))),
        ("forgot the cubic term", "忘了三次项", within(nth(1, first), "u")),
        ("forgot the factor one half", "忘了系数二分之一", rest),
    ),
    "relu": (
        ("kept the negative value", "保留了负值", first),
        (
            "took the absolute value",
            "取成了绝对值",
            lambda term, at: term if term.value else negated(term.parts[0], at),
        ),
    ),
    "cross_entropy": (
        ("took the sum instead of the mean", "取了总和，而不是平均", first),
        ("used the logarithm to base 2", "用了以 2 为底的对数", over(function("log", number(2)))),
        ("used the logarithm to base 10", "用了以 10 为底的对数", over(function("log", number(10)))),
        ("forgot the minus sign", "忘了负号", negated),
        ("stopped at the probability", "停在了概率，没有取对数", _probabilities),
        (
            "took the logarithm of the mean probability",
            "先平均了概率再取对数",
            lambda term, at: negated(function("log", _probabilities(term, at)), at),
        ),
    ),
    "adamw": (
        ("forgot the bias correction", "忘了偏差修正", within(first, "mhat", "vhat")),
        ("forgot the weight decay", "忘了权重衰减", _undecayed),
        (
            "put the decay into the gradient (that is Adam with L2)",
            "把权重衰减加进了梯度（那是带 L2 的 Adam）",
            _coupled,
        ),
        ("moved up the gradient", "朝梯度的方向移动了", nth(1, rest)),
        ("used the bare gradient", "直接用了梯度本身", nth(1, nth(2, lambda term, at: at.read(1, "g")))),
    ),
    "temperature": (
        ("multiplied by the temperature", "乘以了温度", lambda term, at: product(term.parts)),
        ("subtracted the temperature", "减去了温度", _minus_tau),
    ),
    "top_k": (
        (
            "dropped it as 0 instead of −∞",
            "去掉时置成了 0，而不是 −∞",
            lambda term, at: term if term.parts else number(0, "dropped"),
        ),
    ),
    "mul": (("added", "做成了加法", lambda term, at: total(term.parts)),),
    "add": (("subtracted", "做成了减法", nth(1, negated)),),
}

_UNCORRECTED: Slips = (("forgot the bias correction", "忘了偏差修正", first),)
PARTS: dict[str, Slips] = {  # by the label of a quotient inside a term
    "mean": (("forgot to divide by C: that is the sum", "忘了除以 C：那是总和", first),),
    "var": (
        ("forgot to divide by C: that is the sum", "忘了除以 C：那是总和", first),
        ("divided by C − 1 instead of C", "除以了 C − 1，而不是 C", _by_one_less),
        (
            "took the root already",
            "已经开了方",
            lambda term, at: function("sqrt", term) if term.parts[1].value > 1 else None,
        ),
    ),
    "mhat": _UNCORRECTED,
    "vhat": _UNCORRECTED,
}
