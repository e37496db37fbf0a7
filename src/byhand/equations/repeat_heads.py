r"""Repeat heads: in grouped-query attention a key-value head serves a group of query heads.

Equation    y[b,h,s,d] = x[b, h // G, s, d],   G = H / K query heads read each key-value head
Derivative  d_x[b,k,s,d] = sum over the G heads h with h // G = k of d_y[b,h,s,d]
Shapes      x (B, K, S, D) -> y (B, H, S, D), H = G K
Raises      ShapeError if x does not have four axes
Source      Ainslie et al. 2023, arXiv:2305.13245
"""

from math import prod

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import cotangent_sum, element, total


def forward(x, *, times):
    """Repeat each head `times` times in a row: heads 0, 0, 1, 1 rather than 0, 1, 0, 1."""
    require(x.ndim == 4, f"repeat_heads: x must be (B, K, S, D), not {x.shape}")
    b, k, s, d = x.shape
    xp = namespace(x)
    return xp.broadcast_to(x[:, :, None, :, :], (b, k, times, s, d)).reshape((b, k * times, s, d)), ()


def vjp(saved, d_y, *, times):
    """Sum the cotangents of the query heads that read a head."""
    b, h, s, d = d_y.shape
    return (namespace(d_y).sum(d_y.reshape((b, h // times, times, s, d)), axis=2),)


def terms(index, inputs, result, *, times):
    """One element, read from the group's head."""
    b, h, s, d = index
    return total([element(inputs, 0, (b, h // times, s, d), "x")])


def gradient_terms(saved, d_results, slot, index, *, times):
    """The cotangents of the query heads that read the head."""
    b, k, s, d = index
    return cotangent_sum(element(d_results, 0, (b, h, s, d), "∂y") for h in range(k * times, (k + 1) * times))


def flops(x, *, times):
    """None forward; backward, a sum over each group."""
    return 0, (times - 1) * prod(x)


repeat_heads = Equation.of(
    __name__,
    title="Grouped queries: several query heads share one key-value head",
    latex=r"Y_{b,h,s,d} = X_{b,\lfloor h / G \rfloor,s,d}, \quad G = H / K",
    derivative=r"\partial X_{b,k,s,d} = \sum_{h:\, \lfloor h / G \rfloor = k} \partial Y_{b,h,s,d}",
    inputs=(Symbol("x", "X", "(B, K, S, D)", "keys or values of K heads"),),
    result=Symbol("y", "Y", "(B, H, S, D)", "one head for each query head"),
)
