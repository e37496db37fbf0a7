"""Known wrong turns on the way back, by equation: (inputs, cotangent, which input) to what would come out for it."""

from __future__ import annotations

import numpy as np

from byhand.book.practice.wrong_turn import Arrays, WrongTurn, is_square, masked, softmax_of, swapped


def _row_count(i: Arrays) -> int:
    return max(1, i[0].size // i[0].shape[-1])


def _rows(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


def _untransposed(i: Arrays, d: np.ndarray, slot: int) -> np.ndarray | None:
    if slot == 0:
        return d @ i[1] if is_square(i[1]) else None
    rows = _rows(i[0])
    return rows @ _rows(d) if slot == 1 and is_square(rows) and rows.shape[1] == _rows(d).shape[0] else None


def _diagonal(p: np.ndarray, d: np.ndarray) -> np.ndarray:
    return p * (1 - p) * d


def _one_hot(i: Arrays) -> np.ndarray:
    return (np.arange(i[0].shape[-1]) == i[1][..., None]).astype(float)


# A derivative's wrong turns: (inputs, d_result, slot) -> what would come out for that input.
BACKWARD: dict[str, tuple[WrongTurn, ...]] = {
    "linear": (
        WrongTurn(
            "forgot to transpose",
            "忘了转置",
            lambda i, d, slot: _untransposed(i, d, slot),
        ),
        WrongTurn(
            "took the mean over rows instead of the sum",
            "对各行取了平均，而不是求和",
            lambda i, d, slot: (
                None
                if slot == 0 or _row_count(i) == 1
                else (_rows(i[0]).T @ _rows(d) if slot == 1 else _rows(d).sum(0)) / _row_count(i)
            ),
        ),
    ),
    "layer_norm": (
        WrongTurn(
            "only divided by the standard deviation, as if mean and variance were constants",
            "只除以了标准差，把均值与方差当成了常数",
            lambda i, d, slot, eps=1e-5: (
                d * (i[1] if len(i) > 1 else 1) / np.sqrt(i[0].var(-1, keepdims=True) + eps) if slot == 0 else None
            ),
        ),
    ),
    "softmax": (
        WrongTurn(
            "used p(1 − p) d only: the other weights move too",
            "只用了 p(1 − p) d：其余权重也会变",
            lambda i, d, slot: _diagonal(softmax_of(i[0]), d),
        ),
    ),
    "causal_softmax": (
        WrongTurn(
            "used p(1 − p) d only: the other weights move too",
            "只用了 p(1 − p) d：其余权重也会变",
            lambda i, d, slot: _diagonal(softmax_of(masked(i[0])), d),
        ),
    ),
    "attention_scores": (
        WrongTurn(
            "forgot √D",
            "忘了除以 √D",
            lambda i, d, slot: d @ i[1] if slot == 0 else swapped(d) @ i[0],
        ),
    ),
    "mix": (
        WrongTurn(
            "forgot to transpose the weights",
            "忘了把注意力权重转置",
            lambda i, d, slot: i[0] @ d if slot == 1 and is_square(i[0]) else None,
        ),
    ),
    "cross_entropy": (
        WrongTurn(
            "forgot to divide by the number of targets",
            "忘了除以目标的个数",
            lambda i, d, slot: (softmax_of(i[0]) - _one_hot(i)) * d,
        ),
        WrongTurn(
            "forgot to subtract 1 at the target",
            "忘了在目标处减 1",
            lambda i, d, slot: softmax_of(i[0]) * d / max(1, i[1].size),
        ),
        WrongTurn(
            "turned the difference round (target minus probability)",
            "把差弄反了（目标减概率）",
            lambda i, d, slot: (_one_hot(i) - softmax_of(i[0])) * d / max(1, i[1].size),
        ),
    ),
    "relu": (
        WrongTurn("let the gradient through where x is negative", "在 x 为负处也让梯度通过了", lambda i, d, slot: d),
    ),
    "gelu": (WrongTurn("used the derivative of ReLU", "用了 ReLU 的导数", lambda i, d, slot: d * (i[0] > 0)),),
    "residual": (
        WrongTurn("divided the gradient between the two ways", "把梯度在两路之间平分了", lambda i, d, slot: d / 2),
    ),
    "matmul": (
        WrongTurn(
            "forgot to transpose",
            "忘了转置",
            lambda i, d, slot: (d @ i[1] if slot == 0 else i[0] @ d) if is_square(i[0]) and is_square(i[1]) else None,
        ),
    ),
}
