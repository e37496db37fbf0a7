r"""RMSNorm over all heads of a position together: OLMo 2 normalises whole queries and keys before the split.

Equation    y[b,h,t,d] = g[h D + d] xhat[b,h,t,d],   xhat = x rstd[b,t],
            rstd = (avg(x^2) + eps) ** -1/2, over all h, d
Derivative  with j = g * d_y and averages over h and d:  d_x = rstd * (j - xhat * avg(j * xhat));
            d_g[h D + d] = sum over b and t of d_y * xhat
Shapes      x (B, H, T, D), gain (H D,) or none -> y (B, H, T, D)
Units       none; scaling x by a positive number changes nothing but the weight of eps
Raises      ShapeError if x does not have four axes or gain is not (H D,)
Source      OLMo Team 2025, arXiv:2501.00656, section 3.2
"""

from math import prod

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.rows import mapped, over
from byhand.engine.terms import (
    cotangent_sum,
    element,
    function,
    indices,
    number,
    of_row,
    product,
    ratio,
    settled,
    total,
)


def forward(x, gain=None, *, eps=1e-5):
    """Divide by the root mean square over all heads."""
    require(x.ndim == 4, f"heads_rms_norm: x must be (B, H, T, D), not {x.shape}")
    xp, (_, heads, _, width) = namespace(x), x.shape
    columns = heads * width
    require(gain is None or gain.shape == (columns,), f"heads_rms_norm: gain must be ({columns},) for x {x.shape}")
    rstd = 1.0 / xp.sqrt(xp.sum(x * x, axis=(1, 3), keepdims=True) / columns + eps)
    xhat = x * rstd
    if gain is None:
        return xhat, (xhat, rstd)
    return by_head(gain, xhat) * xhat, (xhat, rstd, gain)


def by_head(gain, x):
    """Return the gain (H D,) in a shape that broadcasts to x (B, H, T, D)."""
    return gain.reshape((1, x.shape[1], 1, x.shape[3]))


def vjp(saved, d_y, *, eps=1e-5):
    """Remove from the cotangent what the root mean square absorbs."""
    xhat, rstd, *gain = saved
    xp = namespace(d_y)
    j = d_y * by_head(gain[0], xhat) if gain else d_y
    mean_jx = xp.sum(j * xhat, axis=(1, 3), keepdims=True) / (xhat.shape[1] * xhat.shape[3])
    d_x = rstd * (j - xhat * mean_jx)
    if not gain:
        return (d_x,)
    return d_x, xp.sum(d_y * xhat, axis=(0, 2)).reshape(gain[0].shape)


def terms(index, inputs, result, *, eps=1e-5):
    """An element over the root mean square of all heads at its position, times the gain."""
    xhat = ratio(*_number_and_root(index, inputs, eps), "xhat")
    column = index[1] * inputs[0].shape[3] + index[3]
    return product((element(inputs, 1, (column,), "g"), xhat)) if len(inputs) > 1 else xhat


def saved_terms(which, index, inputs, *, eps=1e-5):
    """xhat, and rstd: 1 over the root mean square of all heads."""
    x, root = _number_and_root(index, inputs, eps)
    return ratio(number(1), root) if which else ratio(x, root)


def _number_and_root(index, inputs, eps):
    b, h, t, d = index
    heads, width = inputs[0].shape[1], inputs[0].shape[3]
    row = over(heads * width, lambda c: element(inputs, 0, (b, c // width, t, c % width), "x"))
    squares = total(mapped(lambda x: function("square", x), row))
    mean_square = of_row(ratio(squares, number(heads * width, "HD"), "avg(x²)"))
    return row[h * width + d], function("sqrt", total((mean_square, number(eps, "eps"))))


def flops(x, gain=None, **_):
    """Square and its sum, product with rstd: 3 per element, backward 5; the gain 1 and 3."""
    scaled = 1 if gain else 0
    return (3 + scaled) * prod(x), (5 + 3 * scaled) * prod(x)


def gradient_terms(saved, d_results, slot, index, *, eps=1e-5):
    """rstd (j - xhat avg(j xhat)), j = g d; the gain sums cotangents times xhat."""
    arrays, (batch, heads, steps, width) = (*d_results, *saved), saved[0].shape
    if slot:
        h, d = divmod(index[0], width)
        at = ((b, h, t, d) for b, t in indices((batch, steps)))
        return cotangent_sum((element(arrays, 0, place, "∂y"), element(arrays, 1, place, "x̂")) for place in at)
    b, h, t, d = index

    def cotangent(c):
        d_y = element(arrays, 0, (b, c // width, t, c % width), "∂y")
        return product((d_y, element(arrays, 3, (c,), "g"))) if len(saved) > 2 else d_y

    row = over(heads * width, lambda c: element(arrays, 1, (b, c // width, t, c % width), "x̂"))
    j, column = over(heads * width, cotangent), h * width + d
    products = total(over(heads * width, lambda c: product((j[c], row[c]))))
    aligned = settled(of_row(ratio(products, number(heads * width, "HD"), "avg(j·x̂)")))
    rstd = element(arrays, 2, (b, 0, t, 0), "rstd")
    return product((rstd, total((j[column], function("negative", product((row[column], aligned)))))))


heads_rms_norm = Equation.of(
    __name__,
    title="RMSNorm of all heads together",
    latex=r"Y_{b,h,t,d} = g_{hD+d}\, \hat{X}_{b,h,t,d}, \quad "
    r"\hat{X}_{b,h,t,d} = \frac{X_{b,h,t,d}}{\sqrt{\overline{X^2}_{b,t} + \epsilon}}, \quad "
    r"\overline{X^2}_{b,t} = \frac{1}{HD}\sum_{h,d} X_{b,h,t,d}^2",
    derivative=r"\partial X = \frac{1}{\sqrt{\overline{X^2} + \epsilon}} \left( J - "
    r"\hat{X}\, \overline{J \odot \hat{X}} \right), \quad J = g \odot \partial Y, \quad "
    r"\partial g_{hD+d} = \sum_{b,t} \partial Y_{b,h,t,d}\, \hat{X}_{b,h,t,d}",
    inputs=(
        Symbol("x", "X", "(B, H, T, D)", "queries or keys of each head"),
        Symbol("gain", "g", "(H D,)", "gain, optional (1 without it)"),
    ),
    result=Symbol("y", "Y", "(B, H, T, D)", "the same, normalised over all heads of a position"),
)
