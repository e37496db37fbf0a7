r"""LayerNorm: centre each C-vector, scale it to unit variance, then apply optional gain and bias.

Equation    y = g * xhat + b,   xhat = (x - mean) * rstd,   rstd = (var + eps) ** -1/2
Derivative  with h = g * d_y and averages over C:  d_x = rstd * (h - avg(h) - xhat * avg(h * xhat));
            d_g = sum over rows of d_y * xhat,  d_b = sum over rows of d_y
Shapes      x (..., C), gain (C,), bias (C,) or neither -> y (..., C)
Units       none; scaling x by a positive number changes nothing but the weight of eps
Raises      ShapeError if gain or bias is not (C,), or only one of them is given
Source      Ba, Kiros & Hinton 2016, arXiv:1607.06450
"""

from math import prod

from byhand.engine.arrays import as_rows, namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.rows import mapped, over
from byhand.engine.terms import (
    Term,
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


def forward(x, gain=None, bias=None, *, eps=1e-5):
    """Normalise; the variance is the biased one (divided by C)."""
    xp = namespace(x)
    width = x.shape[-1]
    require((gain is None) == (bias is None), "layer_norm: give both gain and bias, or neither")
    require(
        gain is None or (bias is not None and gain.shape == bias.shape == (width,)),
        f"layer_norm: gain and bias must be ({width},) for x {x.shape}",
    )
    centred = x - xp.sum(x, axis=-1, keepdims=True) / width
    variance = xp.sum(centred * centred, axis=-1, keepdims=True) / width
    rstd = 1.0 / xp.sqrt(variance + eps)
    xhat = centred * rstd
    if gain is None:
        return xhat, (xhat, rstd)
    return gain * xhat + bias, (xhat, rstd, gain)


def vjp(saved, d_y, *, eps=1e-5):
    """Remove from the cotangent what the mean and the variance absorb."""
    xhat, rstd, *affine = saved
    xp = namespace(d_y)
    width = xhat.shape[-1]
    h = d_y * affine[0] if affine else d_y
    mean_h = xp.sum(h, axis=-1, keepdims=True) / width
    mean_hx = xp.sum(h * xhat, axis=-1, keepdims=True) / width
    d_x = rstd * (h - mean_h - xhat * mean_hx)
    if not affine:
        return (d_x,)
    return d_x, xp.sum(as_rows(d_y * xhat), axis=0), xp.sum(as_rows(d_y), axis=0)


def terms(index, inputs, result, *, eps=1e-5):
    """Deviation over standard deviation, times gain, plus bias."""
    c = index[-1]
    deviation, scale = _deviation_and_scale(index, inputs, eps)
    xhat = ratio(deviation, scale, "xhat")
    if len(inputs) == 1:
        return xhat
    return total((product((element(inputs, 1, (c,), "g"), xhat)), element(inputs, 2, (c,), "b")))


def saved_terms(which, index, inputs, *, eps=1e-5):
    """xhat, and rstd: 1 over the standard deviation of the row."""
    deviation, scale = _deviation_and_scale(index, inputs, eps)
    return ratio(number(1), scale) if which else ratio(deviation, scale)


def _deviation_and_scale(index, inputs, eps):
    *place, c = index
    width = inputs[0].shape[-1]
    row = over(width, lambda i: element(inputs, 0, (*place, i), "x"))
    mean = of_row(ratio(total(row), number(width, "C"), "mean"))

    def deviation(x: Term) -> Term:
        return total((x, function("negative", mean)))

    squares = total(mapped(lambda x: function("square", deviation(x)), row))
    variance = of_row(ratio(squares, number(width, "C"), "var"))
    return deviation(row[c]), function("sqrt", total((variance, number(eps, "eps"))))


def flops(x, gain=None, bias=None, **_):
    """Mean, difference, square and its sum, product with rstd: 5 per element, backward 7; gain and bias 2 and 4."""
    affine = 1 if gain else 0
    return (5 + 2 * affine) * prod(x), (7 + 4 * affine) * prod(x)


def gradient_terms(saved, d_results, slot, index, *, eps=1e-5):
    """rstd (h - avg(h) - xhat avg(h xhat)), h = g d; the gain sums cotangents times xhat, the bias cotangents."""
    if slot:
        return affine_terms(saved, d_results, slot, index)
    *place, c = index
    h, row, rstd = row_terms(saved, d_results, tuple(place))
    width = number(len(row), "C")
    average = settled(of_row(ratio(total(h), width, "avg(h)")))
    products = total(over(len(row), lambda i: product((h[i], row[i]))))
    aligned = settled(of_row(ratio(products, width, "avg(h·x̂)")))
    inner = (h[c], function("negative", average), function("negative", product((row[c], aligned))))
    return product((rstd, total(inner)))


def affine_terms(saved, d_results, slot, index):
    """Return the term of the gradient of a gain (slot 1) or bias (2); shared with RMSNorm."""
    at = ((*row, *index) for row in indices(saved[0].shape[:-1]))
    found = ((element(d_results, 0, place, "∂y"), place) for place in at)
    arrays = (*d_results, *saved)
    return cotangent_sum((d, element(arrays, 1, place, "x̂")) if slot == 1 else d for d, place in found)


def row_terms(saved, d_results, place):
    """Return the elements of h and xhat of one row, and its rstd; shared with RMSNorm."""
    arrays, has_gain, columns = (*d_results, *saved), len(saved) > 2, saved[0].shape[-1]
    d = over(columns, lambda c: element(arrays, 0, (*place, c), "∂y"))
    row = over(columns, lambda c: element(arrays, 1, (*place, c), "x̂"))
    h = over(columns, lambda c: product((d[c], element(arrays, 3, (c,), "g")))) if has_gain else d
    return h, row, element(arrays, 2, (*place, 0), "rstd")


layer_norm = Equation.of(
    __name__,
    title="LayerNorm",
    latex=r"y = g \odot \hat{x} + b, \quad \hat{x} = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}, \quad "
    r"\mu = \frac{1}{C}\sum_i x_i, \quad \sigma^2 = \frac{1}{C}\sum_i (x_i - \mu)^2",
    derivative=r"\partial x = \frac{1}{\sqrt{\sigma^2 + \epsilon}} \left( h - \overline{h} - "
    r"\hat{x}\, \overline{h \odot \hat{x}} \right), \quad h = g \odot \partial y, \quad "
    r"\partial g = \sum_{\mathrm{rows}} \partial y \odot \hat{x}, \quad "
    r"\partial b = \sum_{\mathrm{rows}} \partial y",
    inputs=(
        Symbol("x", "x", "(..., C)", "rows"),
        Symbol("gain", "g", "(C,)", "gain, optional (1 without it)"),
        Symbol("bias", "b", "(C,)", "bias, optional (0 without it)"),
    ),
    result=Symbol("y", "y", "(..., C)", "normalised rows"),
    seed_names=("nn::layernorm_lastdim",),
)
