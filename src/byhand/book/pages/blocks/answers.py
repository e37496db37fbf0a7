"""Generated answers to questions of the pages: worked by the equations, in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.book.lessons.examples.sampling import LOGITS
from byhand.book.pages.blocks.markdown import block
from byhand.book.words.language import COMMA, Words
from byhand.equations.attention_scores import attention_scores
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.mix import mix
from byhand.equations.softmax import softmax

TARGET = 1
QUERY, KEYS, VALUES = [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 4.0]]
SCORES = [0.0, 1.0]  # of the matrix core's first row, before they are divided


@block
def answer(page: Path, lang: str, name: str) -> str:
    """The answer to an exercise, by the name of the function here that works it."""
    return ANSWERS[name]().said(lang)


def probabilities_and_loss() -> Words:
    """Softmax and cross-entropy of four logits."""
    z = np.array(LOGITS, dtype=float)
    e, p = np.exp(z), softmax.forward(z)[0]
    loss = float(cross_entropy.forward(z[None], np.array([TARGET]))[0])
    return Words(
        f"The exponentials are {_list(e)}; their sum is {e.sum():.3f}. The probabilities are {_list(p)}, and the "
        f"loss is −ln {p[TARGET]:.3f} = {loss:.3f}.",
        f"指数分别是 {_list(e, 'zh')}，和为 {e.sum():.3f}。概率是 {_list(p, 'zh')}，损失是 −ln "
        f"{p[TARGET]:.3f} = {loss:.3f}。",
    )


def one_query() -> Words:
    """Scores, weights and result of one query with two keys."""
    q, k, v = (np.array([[x]]) for x in ([QUERY], KEYS, VALUES))
    scores = attention_scores.forward(q, k)[0]
    weights = softmax.forward(scores)[0]
    mixed = mix.forward(weights, v)[0]
    s, w, y = (x[0, 0, 0] for x in (scores, weights, mixed))
    return Words(
        f"The scores are 1/√2 = {s[0]:.3f} and 2/√2 = {s[1]:.3f}. The weights are {w[0]:.4f} and {w[1]:.4f}, and the "
        f"result is ({y[0]:.3f}, {y[1]:.3f}).",
        f"分数是 1/√2 = {s[0]:.3f} 与 2/√2 = {s[1]:.3f}；权重是 {w[0]:.4f} 与 {w[1]:.4f}；"
        f"结果是 ({y[0]:.3f}, {y[1]:.3f})。",
    )


def without_the_scale() -> Words:
    """The weights of the matrix core's first row with other scales."""
    bare = softmax.forward(np.array(SCORES))[0]
    large = np.array(SCORES) * 10 / np.sqrt(2)
    sharp = softmax.forward(large)[0]
    return Words(
        f"Without it, row 0 has the scores 0 and 1, and the weights are {bare[0]:.3f} and {bare[1]:.3f}. With scores "
        f"ten times as large, 0 and {large[1]:.2f}, they are {sharp[0]:.4f} and {sharp[1]:.4f}: nearly a choice of "
        "one token, where a small change of the scores changes almost nothing.",
        f"不除的话，第 0 行的分数是 0 与 1，权重是 {bare[0]:.3f} 与 {bare[1]:.3f}。分数变成十倍，"
        f"即 0 与 {large[1]:.2f}，权重是 {sharp[0]:.4f} 与 {sharp[1]:.4f}："
        "几乎只选一个词元，分数的微小变化几乎不起作用。",
    )


def _list(numbers: np.ndarray, lang: str = "en") -> str:
    return COMMA.said(lang).join(f"{x:.3f}" for x in numbers)


FUNCTIONS = (probabilities_and_loss, one_query, without_the_scale)
ANSWERS = {function.__name__.replace("_", "-"): function for function in FUNCTIONS}
