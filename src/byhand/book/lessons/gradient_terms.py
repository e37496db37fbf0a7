"""The arithmetic of a derivative, for the equations whose slopes are no plain input: softmax, LayerNorm, and so on.

A gradient is always the sum of cotangents times slopes, and the equations' own vjps give both. Where a slope is
itself a small calculation, readers are shown that calculation as the derivative's formula writes it; a test holds
each against the vjp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.book.numbers.arithmetic import settled
from byhand.engine import BackwardStep
from byhand.engine.terms import Index, Term, function, number, product, ratio, total
from byhand.equations.gelu import CUBIC, K

ROW_LABELS = SUM_LABEL, AVERAGE_LABEL, ALIGNED_LABEL = "Σ ∂p·p", "avg(h)", "avg(h·x̂)"  # shared by a whole row


def gradient_term(back: BackwardStep, slot: int, index: Index) -> Term | None:
    """Return the arithmetic of one element of the gradient of input number `slot`; None where shares say it all."""
    write = _WRITERS.get(back.node.equation.name)
    if write is None or slot != 0:
        return None
    return write(back.node.saved, back.d_results[0], index)


def _softmax(saved: tuple[Any, ...], d: Any, index: Index) -> Term:
    """p (d - sum of d p)."""
    p, (*place, i) = saved[0], index
    row, cotangents = p[tuple(place)], d[tuple(place)]
    seen = [j for j in range(len(row)) if float(row[j])]
    mean = settled(total((product((number(cotangents[j]), number(row[j]))) for j in seen), SUM_LABEL))
    return product((number(row[i]), total((number(cotangents[i]), function("negative", mean)))))


def _layer_norm(saved: tuple[Any, ...], d: Any, index: Index) -> Term:
    """rstd (h - avg(h) - xhat avg(h xhat)), h = g d."""
    xhat, rstd, *gain = saved
    *place, c = index
    width = xhat.shape[-1]
    h = np.asarray(d * gain[0] if gain else d)[tuple(place)]
    row = xhat[tuple(place)]
    average = settled(ratio(total(map(number, h)), number(width, "C"), AVERAGE_LABEL))
    products = total(product((number(a), number(b))) for a, b in zip(h, row, strict=True))
    aligned = settled(ratio(products, number(width, "C"), ALIGNED_LABEL))
    inner = (number(h[c]), function("negative", average), function("negative", product((number(row[c]), aligned))))
    return product((number(rstd[(*place, 0)]), total(inner)))


def _cross_entropy(saved: tuple[Any, ...], d: Any, index: Index) -> Term:
    """d (p - [v = y]) / N."""
    p, targets = saved
    *place, v = index
    row = int(np.ravel_multi_index(tuple(place), targets.shape))
    hit = (number(-1),) if int(targets[tuple(place)]) == v else ()
    difference = ratio(total((number(p[row, v]), *hit)), number(p.shape[0], "N"))
    return product((number(d[()]), difference))


def _gelu(saved: tuple[Any, ...], d: Any, index: Index) -> Term:
    """d ((1 + tanh u)/2 + x/2 (1 - tanh^2 u) k (1 + 3 cubic x^2))."""
    x, tanh = number(saved[0][index]), number(saved[1][index])
    gate = ratio(total((number(1), tanh)), number(2))
    inner = total((number(1), product((number(3), number(CUBIC), x, x))))
    rest = product(
        (
            ratio(x, number(2)),
            total((number(1), function("negative", function("square", tanh)))),
            number(K, "k"),
            inner,
        )
    )
    return product((number(d[index]), total((gate, rest))))


_WRITERS: dict[str, Callable[[tuple[Any, ...], Any, Index], Term]] = {
    "softmax": _softmax,
    "causal_softmax": _softmax,
    "layer_norm": _layer_norm,
    "cross_entropy": _cross_entropy,
    "gelu": _gelu,
}
