"""Known wrong turns on the way forward, by equation. Each is the arithmetic of an array with one step changed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from byhand.book.practice.wrong_turn import Arrays, WrongTurn, is_square, masked, softmax_of, swapped


def _scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return q @ swapped(k)


def _normalised(x: np.ndarray, divisor: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / divisor(x)


def _adamw(i: Arrays, s: dict[str, float], correct: bool = True, coupled: bool = False, sign: int = -1) -> np.ndarray:
    theta, g, m, v, lr, t = i
    g = g + s["weight_decay"] * theta if coupled else g
    m = s["beta1"] * m + (1 - s["beta1"]) * g
    v = s["beta2"] * v + (1 - s["beta2"]) * g * g
    if correct:
        m, v = m / (1 - s["beta1"] ** t), v / (1 - s["beta2"] ** t)
    step = m / (np.sqrt(v) + s["eps"]) + (0 if coupled else s["weight_decay"] * theta)
    return theta + sign * lr * step


def _losses(i: Arrays) -> np.ndarray:
    rows = i[0].reshape(-1, i[0].shape[-1])
    return -np.log(softmax_of(rows)[np.arange(len(rows)), i[1].reshape(-1)])


def _targets(i: Arrays) -> np.ndarray:
    rows = softmax_of(i[0].reshape(-1, i[0].shape[-1]))
    return rows[np.arange(len(rows)), i[1].reshape(-1)]


def _masked_to_zero(x: np.ndarray) -> np.ndarray:
    scores = masked(x)
    return np.where(np.isfinite(scores), scores, 0.0)


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _dropped_to_zero(x: np.ndarray, k: int) -> np.ndarray:
    return np.where(np.argsort(np.argsort(-x, kind="stable"), kind="stable") < k, x, 0.0)


FORWARD: dict[str, tuple[WrongTurn, ...]] = {
    "embedding": (
        WrongTurn("took the row of the next id", "取成了下一个编号的行", lambda i: np.roll(i[0], -1, 0)[i[1]]),
        WrongTurn("counted rows from 1", "行号从 1 数起了", lambda i: np.roll(i[0], 1, 0)[i[1]]),
    ),
    "add_positional": (
        WrongTurn("forgot the position", "忘了加位置嵌入", lambda i, start=0: i[0]),
        WrongTurn(
            "took the position's row one further",
            "位置嵌入取成了下一行",
            lambda i, start=0: i[0] + np.roll(i[1], -1, 0)[start : start + i[0].shape[-2]],
        ),
    ),
    "layer_norm": (
        WrongTurn(
            "divided by the variance instead of its root",
            "除以了方差，而不是标准差",
            lambda i, eps=1e-5: _normalised(i[0], lambda x: x.var(-1, keepdims=True) + eps),
        ),
        WrongTurn(
            "divided the variance by C − 1 instead of C",
            "方差除以了 C − 1，而不是 C",
            lambda i, eps=1e-5: _normalised(i[0], lambda x: np.sqrt(x.var(-1, ddof=1, keepdims=True) + eps)),
        ),
        WrongTurn(
            "forgot to subtract the mean",
            "忘了减去均值",
            lambda i, eps=1e-5: i[0] / np.sqrt(i[0].var(-1, keepdims=True) + eps),
        ),
        WrongTurn("only subtracted the mean", "只减了均值", lambda i, eps=1e-5: i[0] - i[0].mean(-1, keepdims=True)),
    ),
    "residual": (
        WrongTurn("forgot the stream", "忘了加上残差流", lambda i: i[1]),
        WrongTurn("forgot the sublayer", "忘了加上子层的输出", lambda i: i[0]),
    ),
    "linear": (
        WrongTurn("forgot the bias", "忘了加偏置", lambda i: i[0] @ i[1]),
        WrongTurn(
            "used the transposed weight",
            "用了转置的权重",
            lambda i: i[0] @ i[1].T + (i[2] if len(i) > 2 else 0) if is_square(i[1]) else None,
        ),
    ),
    "matmul": (
        WrongTurn(
            "used the transposed right factor",
            "右边的矩阵用成了转置",
            lambda i: i[0] @ swapped(i[1]) if is_square(i[1]) else None,
        ),
        WrongTurn(
            "multiplied element by element",
            "按元素相乘了",
            lambda i: i[0] * i[1] if i[0].shape == i[1].shape else None,
        ),
    ),
    "attention_scores": (
        WrongTurn("forgot √D", "忘了除以 √D", lambda i: _scores(*i)),
        WrongTurn("divided by D instead of √D", "除以了 D，而不是 √D", lambda i: _scores(*i) / i[0].shape[-1]),
        WrongTurn("multiplied by √D", "乘以了 √D", lambda i: _scores(*i) * math.sqrt(i[0].shape[-1])),
        WrongTurn(
            "mixed up query and key",
            "把查询与键弄反了",
            lambda i: swapped(_scores(*i)) / math.sqrt(i[0].shape[-1]) if is_square(_scores(*i)) else None,
        ),
    ),
    "causal_softmax": (
        WrongTurn("forgot the mask", "忘了因果掩码", lambda i: softmax_of(i[0])),
        WrongTurn(
            "took the softmax over the queries (the wrong axis)",
            "softmax 沿查询方向（轴错了）",
            lambda i: softmax_of(masked(i[0]), -2),
        ),
        WrongTurn("forgot to divide by the sum", "忘了除以总和", lambda i: np.exp(masked(i[0]))),
        WrongTurn(
            "set masked scores to 0 instead of −∞",
            "掩码处置成了 0，而不是 −∞",
            lambda i: softmax_of(_masked_to_zero(i[0])),
        ),
    ),
    "softmax": (
        WrongTurn(
            "took the softmax over the wrong axis",
            "softmax 的轴错了",
            lambda i: softmax_of(i[0], -2) if i[0].ndim > 1 else None,
        ),
        WrongTurn("forgot to divide by the sum", "忘了除以总和", lambda i: np.exp(i[0])),
        WrongTurn(
            "divided the scores themselves by their sum",
            "没有取指数，直接除以总和",
            lambda i: i[0] / np.sum(i[0], -1, keepdims=True),
        ),
    ),
    "mix": (
        WrongTurn(
            "used the transposed weights",
            "用了转置的注意力权重",
            lambda i: swapped(i[0]) @ i[1] if is_square(i[0]) else None,
        ),
        WrongTurn(
            "averaged the values with equal weights",
            "对各个值取了等权平均",
            lambda i: np.broadcast_to(i[1].mean(-2, keepdims=True), (*i[0].shape[:-1], i[1].shape[-1])),
        ),
    ),
    "gelu": (
        WrongTurn("used ReLU", "用成了 ReLU", lambda i: np.maximum(i[0], 0)),
        WrongTurn(
            "forgot the cubic term",
            "忘了三次项",
            lambda i: 0.5 * i[0] * (1 + np.tanh(math.sqrt(2 / math.pi) * i[0])),
        ),
        WrongTurn("forgot the factor one half", "忘了系数二分之一", lambda i: 2 * _gelu(i[0])),
    ),
    "relu": (
        WrongTurn("kept the negative value", "保留了负值", lambda i: i[0]),
        WrongTurn("took the absolute value", "取成了绝对值", lambda i: np.abs(i[0])),
    ),
    "cross_entropy": (
        WrongTurn("took the sum instead of the mean", "取了总和，而不是平均", lambda i: np.sum(_losses(i))),
        WrongTurn("used the logarithm to base 2", "用了以 2 为底的对数", lambda i: np.mean(_losses(i)) / math.log(2)),
        WrongTurn(
            "used the logarithm to base 10", "用了以 10 为底的对数", lambda i: np.mean(_losses(i)) / math.log(10)
        ),
        WrongTurn("forgot the minus sign", "忘了负号", lambda i: -np.mean(_losses(i))),
        WrongTurn("stopped at the probability", "停在了概率，没有取对数", lambda i: np.mean(_targets(i))),
        WrongTurn(
            "took the logarithm of the mean probability",
            "先平均了概率再取对数",
            lambda i: -np.log(np.mean(_targets(i))),
        ),
    ),
    "adamw": (
        WrongTurn("forgot the bias correction", "忘了偏差修正", lambda i, **s: _adamw(i, s, correct=False)),
        WrongTurn("forgot the weight decay", "忘了权重衰减", lambda i, **s: _adamw(i, s | {"weight_decay": 0.0})),
        WrongTurn(
            "put the decay into the gradient (that is Adam with L2)",
            "把权重衰减加进了梯度（那是带 L2 的 Adam）",
            lambda i, **s: _adamw(i, s, coupled=True),
        ),
        WrongTurn("moved up the gradient", "朝梯度的方向移动了", lambda i, **s: _adamw(i, s, sign=1)),
        WrongTurn("used the bare gradient", "直接用了梯度本身", lambda i, **s: i[0] - i[4] * i[1]),
    ),
    "temperature": (
        WrongTurn("multiplied by the temperature", "乘以了温度", lambda i, tau: i[0] * tau),
        WrongTurn("subtracted the temperature", "减去了温度", lambda i, tau: i[0] - tau),
    ),
    "top_k": (
        WrongTurn(
            "dropped it as 0 instead of −∞", "去掉时置成了 0，而不是 −∞", lambda i, k: _dropped_to_zero(i[0], k)
        ),
    ),
    "mul": (WrongTurn("added", "做成了加法", lambda i: i[0] + i[1]),),
    "add": (WrongTurn("subtracted", "做成了减法", lambda i: i[0] - i[1]),),
}
