"""Typical mistakes on the way back, by equation: edits of the term of one element of an input's gradient."""

from __future__ import annotations

from byhand.book.practice.edits import Asked, Slips, cotangent, first, negated, nth, over, row_times_column
from byhand.engine.terms import Term, function, number, product, ratio, total

# -- linear


def _linear_untransposed(term: Term, at: Asked) -> Term | None:
    x, weight, *_ = at.inputs
    x, d = x.reshape(-1, x.shape[-1]), at.d.reshape(-1, weight.shape[1])
    left, right, square = (at.d, weight, weight) if at.slot == 0 else (x, d, x)
    return row_times_column(left, right, at.index) if at.slot < 2 and square.shape[0] == square.shape[1] else None


def _mean_over_rows(term: Term, at: Asked) -> Term | None:
    rows = at.inputs[0].size // at.inputs[0].shape[-1]
    return ratio(term, number(rows, "N")) if at.slot and rows > 1 else None


# -- softmax, causal_softmax


def _own_weight_only(term: Term, at: Asked) -> Term:
    p, (d, _) = term.parts[0], term.parts[1].parts
    return product((p, total((number(1), negated(p, at))), d))


# -- mix


def _mix_untransposed(term: Term, at: Asked) -> Term | None:
    *_, queries, keys = at.inputs[0].shape
    return row_times_column(at.inputs[0], at.d, at.index) if at.slot == 1 and queries == keys else None


# -- gelu


def _relu_slope(term: Term, at: Asked) -> Term:
    return product((cotangent(term, at), number(at.inputs[0][at.index] > 0)))


# -- matmul


def _matmul_untransposed(term: Term, at: Asked) -> Term | None:
    a, b = at.inputs
    left, right = (at.d, b) if at.slot == 0 else (a, at.d)
    return row_times_column(left, right, at.index) if a.shape == b.shape == at.d.shape else None


BACKWARD: dict[str, Slips] = {
    "linear": (
        ("forgot to transpose", "忘了转置", _linear_untransposed),
        ("took the mean over rows instead of the sum", "对各行取了平均，而不是求和", _mean_over_rows),
    ),
    "layer_norm": (
        (
            "only divided by the standard deviation, as if mean and variance were constants",
            "只除以了标准差，把均值与方差当成了常数",
            lambda term, at: None if at.slot else nth(1, first)(term, at),
        ),
    ),
    "softmax": (
        ("used p(1 − p) d only: the other weights move too", "只用了 p(1 − p) d：其余权重也会变", _own_weight_only),
    ),
    "causal_softmax": (
        ("used p(1 − p) d only: the other weights move too", "只用了 p(1 − p) d：其余权重也会变", _own_weight_only),
    ),
    "attention_scores": (
        (
            "forgot √D",
            "忘了除以 √D",
            lambda term, at: product((term, function("sqrt", number(at.inputs[0].shape[-1], "D")))),
        ),
    ),
    "mix": (("forgot to transpose the weights", "忘了把注意力权重转置", _mix_untransposed),),
    "cross_entropy": (
        ("forgot to divide by the number of targets", "忘了除以目标的个数", nth(1, first)),
        ("forgot to subtract 1 at the target", "忘了在目标处减 1", nth(1, nth(0, first))),
        ("turned the difference round (target minus probability)", "把差弄反了（目标减概率）", negated),
    ),
    "relu": (("let the gradient through where x is negative", "在 x 为负处也让梯度通过了", cotangent),),
    "gelu": (("used the derivative of ReLU", "用了 ReLU 的导数", _relu_slope),),
    "residual": (("divided the gradient between the two ways", "把梯度在两路之间平分了", over(number(2))),),
    "matmul": (("forgot to transpose", "忘了转置", _matmul_untransposed),),
}
