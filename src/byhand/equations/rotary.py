r"""Rotary position embedding: rotate pairs of a query's or key's elements by an angle that grows with the position.

Equation    y_i = x_i cos(a) - x_j sin(a),   y_j = x_j cos(a) + x_i sin(a),   a = (start + t) base ** (-2 p / R)
            for each pair p < R/2 of columns: (i, j) = (p, p + R/2) for "halves", (2 p, 2 p + 1) for "neighbours";
            columns from R on are unchanged. For longer texts a times s_p (`slowed`), cos(a) and sin(a) times m
Derivative  d_x_i = d_y_i cos(a) + d_y_j sin(a),   d_x_j = d_y_j cos(a) - d_y_i sin(a): the inverse rotation
Shapes      x (..., T, D), start () or, for each stream, (B,) of integers, or absent: 0 -> (..., T, D);
            R = width, even, at most D
Units       angles in radians; lengths are preserved (except for m), and q.k depends only on the positions' distance
Raises      ShapeError if x has fewer than two axes, if the width is odd or larger than D, or
            if the pairing is unknown
Source      Su et al. 2021, arXiv:2104.09864, section 3.2
"""

import math
from typing import NamedTuple

from byhand.engine.arrays import namespace, positions, require, start_of
from byhand.engine.equation import Equation, Symbol, per_element
from byhand.engine.terms import element, function, number, product, total

PAIRINGS = ("halves", "neighbours")
SCALINGS = ("linear", "llama3", "yarn")


class Scaling(NamedTuple):
    """How a model trained on short texts is extended to longer ones: its pairs rotate more slowly.

    kind      linear: all pairs alike. llama3, yarn: those with many turns in a text of the old length are unchanged
    factor    f, the largest slow-down of a pair
    original  L, the length of the old texts
    slow      pairs with fewer turns than this in L positions are slowed by the whole factor
    fast      pairs with more turns than this are unchanged
    m         factor of cosines and sines, so that scores grow by its square
    """

    kind: str
    factor: float
    original: int = 0
    slow: float = 0.0
    fast: float = 0.0
    m: float = 1.0


def forward(x, start=None, *, base, width, pairing="halves", scaling=None):
    """Compute the angles in the namespace's default real type: float32 would lose digits of large angles."""
    require(x.ndim >= 2, f"rotary: x must be (..., T, D), not {x.shape}")
    require(
        0 < width <= x.shape[-1] and width % 2 == 0,
        f"rotary: the width {width} must be even and at most that of x {x.shape}",
    )
    require(pairing in PAIRINGS, f"rotary: the pairing {pairing!r} is not one of {', '.join(PAIRINGS)}")
    xp = namespace(x)
    wide = xp.__array_namespace_info__().default_dtypes()["real floating"]
    steps = xp.arange(x.shape[-2]) if start is None else positions(start, x)
    angles = xp.asarray(steps, dtype=wide)[..., None] * xp.asarray(frequencies(base, width, scaling), dtype=wide)
    m = magnitude(scaling)
    cos, sin = xp.asarray(m * xp.cos(angles), dtype=x.dtype), xp.asarray(m * xp.sin(angles), dtype=x.dtype)
    return turned(x, cos, sin, pairing), (cos, sin) if start is None else (cos, sin, start)


def frequencies(base, width, scaling=None):
    """Return each pair's angle from one position to the next."""
    plain = [base ** (-2 * p / width) for p in range(width // 2)]
    return plain if scaling is None else [f * s for f, s in zip(plain, slowed(base, width, scaling), strict=True)]


def magnitude(scaling):
    """Return m; 1 without a scaling."""
    return 1.0 if scaling is None else scaling.m


def slowed(base, width, scaling):
    r"""Return the factor s_p of each pair's angle.

    Equation    linear: s_p = 1 / f. Otherwise s_p = k_p + (1 - k_p) / f, where k_p, clipped to 0 and 1, is
                llama3: (n - slow) / (fast - slow), with n = L base ** (-2 p / R) / (2 pi), p's turns in L positions
                yarn:   1 - (p - p_fast) / (p_slow - p_fast), with p_n = R ln(L / (2 pi n)) / (2 ln base), the pair
                        that makes n turns: p_fast rounded down, at least 0, p_slow rounded up, at most R - 1
    Source      Meta's Llama 3.1; Peng et al. 2023, arXiv:2309.00071, section 3.2
    """
    kind, factor, original, slow, fast, _ = scaling
    pairs = range(width // 2)
    if kind == "linear":
        return [1 / factor for _ in pairs]
    if kind == "llama3":
        turns = [original * base ** (-2 * p / width) / (2 * math.pi) for p in pairs]
        kept = [(n - slow) / (fast - slow) for n in turns]
    else:
        first, last = (width * math.log(original / (2 * math.pi * n)) / (2 * math.log(base)) for n in (fast, slow))
        first, last = max(math.floor(first), 0), min(math.ceil(last), width - 1)
        kept = [1 - (p - first) / (last - first or 0.001) for p in pairs]
    return [k + (1 - k) / factor for k in (min(max(k, 0.0), 1.0) for k in kept)]


def turned(x, cos, sin, pairing):
    """Return x with its pairs rotated, given the angles' cosines and sines (T, R/2)."""
    xp, width = namespace(x), 2 * cos.shape[-1]
    if pairing == "halves":
        left, right = x[..., : width // 2], x[..., width // 2 : width]
    else:
        left, right = x[..., 0:width:2], x[..., 1:width:2]
    pairs = left * cos - right * sin, right * cos + left * sin
    if pairing == "halves":
        made = xp.concat(list(pairs), axis=-1)
    else:
        made = xp.stack(list(pairs), axis=-1).reshape((*x.shape[:-1], width))
    return made if width == x.shape[-1] else xp.concat([made, x[..., width:]], axis=-1)


def vjp(saved, d_y, *, base, width, pairing="halves", scaling=None):
    """Rotate back: a rotation's transpose is the rotation by the opposite angle; m stays."""
    d_x = turned(d_y, saved[0], -saved[1], pairing)
    return (d_x,) if len(saved) == 2 else (d_x, None)


def pair_of(column, width, pairing):
    """Return a column's pair p, its partner, and whether it is the pair's first; None for an unrotated column."""
    if column >= width:
        return None
    if pairing == "halves":
        return column % (width // 2), (column + width // 2) % width, column < width // 2
    return column // 2, column ^ 1, column % 2 == 0


def terms(index, inputs, result, *, base, width, pairing="halves", scaling=None):
    """The pair's two elements, times cosine and sine of the angle, and m."""
    *place, t, column = index
    x = element(inputs, 0, index, "x")
    if (found := pair_of(column, width, pairing)) is None:
        return total([x])
    pair, partner, is_first = found
    start = start_of(inputs, 1, index)
    steps = [number(frequencies(base, width)[pair], f"b^(−{2 * pair}/{width})")]
    steps += [] if scaling is None else [number(slowed(base, width, scaling)[pair], "s")]
    angle = product((number(start + t, "start + t" if start else "t"), *steps), "a")
    by = [] if magnitude(scaling) == 1 else [number(magnitude(scaling), "m")]
    other = product((element(inputs, 0, (*place, t, partner), "x"), function("sin", angle), *by))
    return total((product((x, function("cos", angle), *by)), function("negative", other) if is_first else other))


def gradient_terms(saved, d_results, slot, index, *, base, width, pairing="halves", scaling=None):
    """The pair's two cotangents, times the saved cosine and sine of the angle, which include m."""
    *place, t, column = index
    d = element(d_results, 0, index, "∂y")
    if (found := pair_of(column, width, pairing)) is None:
        return d
    pair, partner, is_first = found
    at = (t, pair) if saved[0].ndim == 2 else (place[0], *(0 for _ in place[1:]), t, pair)
    cos, sin = (element((*d_results, *saved), k, at, name) for k, name in ((1, "cos"), (2, "sin")))
    other = product((element(d_results, 0, (*place, t, partner), "∂y"), sin))
    return total((product((d, cos)), other if is_first else function("negative", other)))


flops = per_element(3, 3)  # two products and a sum; the angles are few

rotary = Equation.of(
    __name__,
    title="Rotary position embedding (RoPE)",
    latex=r"y_i = x_i \cos a - x_j \sin a, \quad y_j = x_j \cos a + x_i \sin a, "
    r"\quad a = (\mathrm{start} + t)\, b^{-2p/R}, "
    r"\quad (i, j) = \begin{cases} (p,\; p + R/2) & \mathrm{halves} \\ (2p,\; 2p + 1) & \mathrm{neighbours} "
    r"\end{cases}",
    derivative=r"\partial x_i = \partial y_i \cos a + \partial y_j \sin a, "
    r"\quad \partial x_j = \partial y_j \cos a - \partial y_i \sin a",
    inputs=(
        Symbol("x", "x", "(..., T, D)", "queries or keys"),
        Symbol("start", r"\mathrm{start}", "() or (B,)", "number of positions before the first one; 0 if not given"),
    ),
    result=Symbol("y", "y", "(..., T, D)", "the same, rotated by position"),
)
