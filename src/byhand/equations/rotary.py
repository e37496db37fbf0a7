r"""Rotary position embedding: turn each pair of a query's or key's numbers by an angle that grows with the position.

Equation    y_i = x_i cos(a) - x_j sin(a),   y_j = x_j cos(a) + x_i sin(a),   a = (start + t) base ** (-2 p / R)
            for each pair p < R/2 of columns: (i, j) = (p, p + R/2) for "halves", (2 p, 2 p + 1) for "neighbours";
            columns from R on stay as they are
Derivative  d_x_i = d_y_i cos(a) + d_y_j sin(a),   d_x_j = d_y_j cos(a) - d_y_i sin(a): the pairs turned back
Shapes      x (..., T, D), start () or, for each stream, (B,) of integers, or absent: 0 -> (..., T, D);
            R = width, even, at most D
Units       angles in radians; lengths stay, and q.k depends on the distance of the two positions alone
Raises      ShapeError if x has fewer than two axes, if the width is odd or larger than D, or
            if the pairing is unknown
Source      Su et al. 2021, arXiv:2104.09864, section 3.2
"""

from byhand.engine.arrays import namespace, positions, require, start_of
from byhand.engine.equation import Equation, Symbol, per_element
from byhand.engine.terms import element, function, number, product, total

PAIRINGS = ("halves", "neighbours")


def forward(x, start=None, *, base, width, pairing="halves"):
    """Compute the angles in the namespace's default real type: float32 loses digits of large angles."""
    require(x.ndim >= 2, f"rotary: x must be (..., T, D), not {x.shape}")
    require(
        0 < width <= x.shape[-1] and width % 2 == 0,
        f"rotary: the width {width} must be even and at most that of x {x.shape}",
    )
    require(pairing in PAIRINGS, f"rotary: the pairing {pairing!r} is not one of {', '.join(PAIRINGS)}")
    xp = namespace(x)
    wide = xp.__array_namespace_info__().default_dtypes()["real floating"]
    steps = xp.arange(x.shape[-2]) if start is None else positions(start, x)
    angles = xp.asarray(steps, dtype=wide)[..., None] * xp.asarray(frequencies(base, width), dtype=wide)
    cos, sin = xp.asarray(xp.cos(angles), dtype=x.dtype), xp.asarray(xp.sin(angles), dtype=x.dtype)
    return turned(x, cos, sin, pairing), (cos, sin) if start is None else (cos, sin, start)


def frequencies(base, width):
    """Return the angle by which each pair turns from one position to the next."""
    return [base ** (-2 * p / width) for p in range(width // 2)]


def turned(x, cos, sin, pairing):
    """Return x with its pairs turned by the angles whose cosines and sines (T, R/2) are given."""
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


def vjp(saved, d_y, *, base, width, pairing="halves"):
    """Turn back: the transpose of a rotation is the rotation by the opposite angle."""
    d_x = turned(d_y, saved[0], -saved[1], pairing)
    return (d_x,) if len(saved) == 2 else (d_x, None)


def pair_of(column, width, pairing):
    """Return a column's pair p, its partner, and whether it is the pair's first; None for a column that stays."""
    if column >= width:
        return None
    if pairing == "halves":
        return column % (width // 2), (column + width // 2) % width, column < width // 2
    return column // 2, column ^ 1, column % 2 == 0


def terms(index, inputs, result, *, base, width, pairing="halves"):
    """Two numbers of the pair, times cosine and sine of the angle."""
    *place, t, column = index
    x = element(inputs, 0, index, "x")
    if (found := pair_of(column, width, pairing)) is None:
        return total([x])
    pair, partner, is_first = found
    start = start_of(inputs, 1, index)
    step = number(frequencies(base, width)[pair], f"b^(−{2 * pair}/{width})")
    angle = product((number(start + t, "start + t" if start else "t"), step), "a")
    other = product((element(inputs, 0, (*place, t, partner), "x"), function("sin", angle)))
    return total((product((x, function("cos", angle))), function("negative", other) if is_first else other))


def gradient_terms(saved, d_results, slot, index, *, base, width, pairing="halves"):
    """Two cotangents of the pair, times cosine and sine of the angle."""
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
        Symbol(
            "start", r"\mathrm{start}", "() or (B,)", "number of positions before the first one; 0 if it is not given"
        ),
    ),
    result=Symbol("y", "y", "(..., T, D)", "the same, turned by position"),
)
