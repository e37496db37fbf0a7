r"""Rotary position embedding: turn each pair of a query's or key's numbers by an angle that grows with the position.

Equation    y_i = x_i cos(a) - x_j sin(a),   y_j = x_j cos(a) + x_i sin(a),   a = (start + t) base ** (-2 p / R)
            for each pair p = 0, 1, ..., R/2 - 1 of numbers (i, j): (p, p + R/2) for "halves",
            (2 p, 2 p + 1) for "neighbours"; the other D - R numbers stay
Derivative  the pairs of d_y turned back: d_x_i = d_y_i cos(a) + d_y_j sin(a),  d_x_j = d_y_j cos(a) - d_y_i sin(a)
Shapes      x (..., T, D), start () of integers or absent: 0 -> (..., T, D); R = width, even, at most D
Units       angles in radians; lengths stay, and q.k depends on the distance of the two positions alone
Raises      ShapeError if the width is odd or larger than D
Source      Su et al. 2021, arXiv:2104.09864, section 3.2
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol, per_element
from byhand.engine.terms import element, function, number, product, total


def forward(x, start=None, *, base, width, pairing="halves"):
    """Turn by angles computed in the widest type that the arrays' namespace has by default."""
    require(
        0 < width <= x.shape[-1] and width % 2 == 0,
        f"rotary: the width {width} must be even and at most that of x {x.shape}",
    )
    xp = namespace(x)
    wide = xp.__array_namespace_info__().default_dtypes()["real floating"]
    steps = xp.arange(x.shape[-2]) if start is None else start + xp.arange(x.shape[-2])
    angles = xp.asarray(steps, dtype=wide)[:, None] * xp.asarray(frequencies(base, width), dtype=wide)[None, :]
    cos, sin = xp.asarray(xp.cos(angles), dtype=x.dtype), xp.asarray(xp.sin(angles), dtype=x.dtype)
    return turned(x, cos, sin, pairing), (cos, sin) if start is None else (cos, sin, start)


def frequencies(base, width):
    """Return the angle of each pair at position 1."""
    return [base ** (-2 * p / width) for p in range(width // 2)]


def turned(x, cos, sin, pairing):
    """Return x with its pairs turned by the angles of cos and sin (T, R/2)."""
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
    cos, sin, *start = saved
    return (turned(d_y, cos, -sin, pairing), *[None] * len(start))


def pair_of(column, width, pairing):
    """Return a column's pair, its partner, and the sign of the partner's sine; None if it is not rotated."""
    if column >= width:
        return None
    if pairing == "halves":
        half = width // 2
        return column % half, (column + half) % width, -1 if column < half else 1
    return column // 2, column ^ 1, -1 if column % 2 == 0 else 1


def terms(index, inputs, result, *, base, width, pairing="halves"):
    """Two numbers of the pair, times cosine and sine of the angle."""
    *place, t, column = index
    x = element(inputs, 0, index, "x")
    if (found := pair_of(column, width, pairing)) is None:
        return total([x])
    pair, partner, sign = found
    position = t + (int(inputs[1]) if len(inputs) > 1 else 0)
    angle = product((number(position, "position"), number(frequencies(base, width)[pair], "angle of a step")), "a")
    other = product((element(inputs, 0, (*place, t, partner), "x"), function("sin", angle)))
    return total((product((x, function("cos", angle))), function("negative", other) if sign < 0 else other))


flops = per_element(3, 3)  # two products and a sum; the angles are few

rotary = Equation.of(
    __name__,
    title="Rotary position embedding (RoPE)",
    latex=r"\begin{pmatrix} y_i \\ y_j \end{pmatrix} = "
    r"\begin{pmatrix} \cos a & -\sin a \\ \sin a & \cos a \end{pmatrix} "
    r"\begin{pmatrix} x_i \\ x_j \end{pmatrix}, \quad a = (\mathrm{start} + t)\, b^{-2p/R}",
    derivative=r"\begin{pmatrix} \partial x_i \\ \partial x_j \end{pmatrix} = "
    r"\begin{pmatrix} \cos a & \sin a \\ -\sin a & \cos a \end{pmatrix} "
    r"\begin{pmatrix} \partial y_i \\ \partial y_j \end{pmatrix}",
    inputs=(
        Symbol("x", "x", "(..., T, D)", "queries or keys"),
        Symbol("start", r"\mathrm{start}", "()", "number of positions before the first one; 0 if it is not given"),
    ),
    result=Symbol("y", "y", "(..., T, D)", "the same, turned"),
)
