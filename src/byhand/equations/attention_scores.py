r"""Attention scores: how well each query matches each key.

Equation    S[b,h,t,s] = sum over d of q[b,h,t,d] k[b,h,s,d] / sqrt(D)
Derivative  d_q = d_S k / sqrt(D),  d_k = d_S^T q / sqrt(D)
Shapes      q (B, H, T, D), k (B, H, S, D) -> (B, H, T, S)
Units       none; the scale keeps the variance of S independent of D. A `divisor` replaces D under the root
Raises      ShapeError if the head widths, batches or numbers of heads differ
Source      Vaswani et al. 2017, arXiv:1706.03762, equation 1
"""

import math

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.rows import over
from byhand.engine.terms import cotangent_sum, element, function, number, product, ratio, total


def forward(q, k, *, divisor=None):
    """Scale the queries (smaller than the scores), then take all dot products."""
    require(q.shape[-1] == k.shape[-1], f"attention_scores: q {q.shape} and k {k.shape} differ in head width")
    require(q.shape[:-2] == k.shape[:-2], f"attention_scores: q {q.shape} and k {k.shape} differ in batch or heads")
    scaled = q * (1.0 / math.sqrt(divisor or q.shape[-1]))
    return scaled @ namespace(q).matrix_transpose(k), (q, k)


def vjp(saved, d_s, *, divisor=None):
    """Two matrix products with the same scale."""
    q, k = saved
    scale = 1.0 / math.sqrt(divisor or q.shape[-1])
    return (d_s @ k) * scale, namespace(d_s).matrix_transpose(d_s) @ (q * scale)


def terms(index, inputs, result, *, divisor=None):
    """A dot product over the square root of the head width, or of the divisor."""
    b, h, t, s = index
    width = inputs[0].shape[-1]
    dot = total(
        over(width, lambda d: product((element(inputs, 0, (b, h, t, d), "q"), element(inputs, 1, (b, h, s, d), "k"))))
    )
    return ratio(dot, function("sqrt", number(divisor or width, "D")))


def gradient_terms(saved, d_results, slot, index, *, divisor=None):
    """Cotangents times keys for a query, times queries for a key, over the square root of the head width."""
    arrays, (b, h, i, d) = (*d_results, *saved), index
    root = function("sqrt", number(divisor or saved[0].shape[-1], "D"))
    count = d_results[0].shape[2 if slot else 3]

    def pair(j):
        t, s = (j, i) if slot else (i, j)
        other = element(arrays, 1, (b, h, t, d), "q") if slot else element(arrays, 2, (b, h, s, d), "k")
        return element(arrays, 0, (b, h, t, s), "∂S"), ratio(other, root)

    return cotangent_sum(over(count, pair))


def products(q, k, **_):
    """Two for each pair of positions and column; backward, as many for queries and for keys."""
    operations = 2 * math.prod(q) * k[-2]
    return operations, 2 * operations


def flops(q, k, **_):
    """The scale: on the queries; backward, on both gradients."""
    return math.prod(q), math.prod(q) * 2


attention_scores = Equation.of(
    __name__,
    title="Scaled dot-product scores",
    latex=r"S_{t,s} = \frac{Q_t \cdot K_s}{\sqrt{D}}",
    derivative=r"\partial Q = \frac{\partial S\, K}{\sqrt{D}}, \quad "
    r"\partial K = \frac{(\partial S)^{\top} Q}{\sqrt{D}}",
    inputs=(Symbol("q", "Q", "(B, H, T, D)", "queries"), Symbol("k", "K", "(B, H, S, D)", "keys")),
    result=Symbol("scores", "S", "(B, H, T, S)", "scores before the mask"),
    seed_names=("nn::self_attention_1h",),
)
