r"""RMSNorm: divide each C-vector by its root mean square, then apply an optional gain.

Equation    y = g * xhat,   xhat = x * rstd,   rstd = (avg(x^2) + eps) ** -1/2
Derivative  with h = g * d_y and averages over C:  d_x = rstd * (h - xhat * avg(h * xhat));
            d_g = sum over rows of d_y * xhat
Shapes      x (..., C), gain (C,) or none -> y (..., C)
Units       none; scaling x by a positive number changes nothing but the weight of eps
Raises      ShapeError if gain is not (C,)
Source      Zhang & Sennrich 2019, arXiv:1910.07467
"""

from math import prod

from byhand.engine.arrays import as_rows, namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.rows import mapped, over
from byhand.engine.terms import element, function, number, of_row, product, ratio, settled, total
from byhand.equations.layer_norm import affine_terms, row_terms


def forward(x, gain=None, *, eps=1e-5):
    """Divide by the root mean square; the mean is not subtracted."""
    xp = namespace(x)
    width = x.shape[-1]
    require(gain is None or gain.shape == (width,), f"rms_norm: gain must be ({width},) for x {x.shape}")
    rstd = 1.0 / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) / width + eps)
    xhat = x * rstd
    if gain is None:
        return xhat, (xhat, rstd)
    return gain * xhat, (xhat, rstd, gain)


def vjp(saved, d_y, *, eps=1e-5):
    """Remove from the cotangent what the root mean square absorbs."""
    xhat, rstd, *gain = saved
    xp = namespace(d_y)
    h = d_y * gain[0] if gain else d_y
    mean_hx = xp.sum(h * xhat, axis=-1, keepdims=True) / xhat.shape[-1]
    d_x = rstd * (h - xhat * mean_hx)
    if not gain:
        return (d_x,)
    return d_x, xp.sum(as_rows(d_y * xhat), axis=0)


def terms(index, inputs, result, *, eps=1e-5):
    """An element over the root mean square of its row, times the gain."""
    xhat = ratio(*_number_and_root(index, inputs, eps), "xhat")
    return product((element(inputs, 1, index[-1:], "g"), xhat)) if len(inputs) > 1 else xhat


def saved_terms(which, index, inputs, *, eps=1e-5):
    """xhat, and rstd: 1 over the root mean square of the row."""
    x, root = _number_and_root(index, inputs, eps)
    return ratio(number(1), root) if which else ratio(x, root)


def _number_and_root(index, inputs, eps):
    *place, c = index
    width = inputs[0].shape[-1]
    row = over(width, lambda i: element(inputs, 0, (*place, i), "x"))
    squares = total(mapped(lambda x: function("square", x), row))
    mean_square = of_row(ratio(squares, number(width, "C"), "avg(x²)"))
    return row[c], function("sqrt", total((mean_square, number(eps, "eps"))))


def flops(x, gain=None, **_):
    """Square and its sum, product with rstd: 3 per element, backward 5; the gain 1 and 3."""
    scaled = 1 if gain else 0
    return (3 + scaled) * prod(x), (5 + 3 * scaled) * prod(x)


def gradient_terms(saved, d_results, slot, index, *, eps=1e-5):
    """rstd (h - xhat avg(h xhat)), h = g d; the gain sums cotangents times xhat."""
    if slot:
        return affine_terms(saved, d_results, slot, index)
    *place, c = index
    h, row, rstd = row_terms(saved, d_results, tuple(place))
    products = total(over(len(row), lambda i: product((h[i], row[i]))))
    aligned = settled(of_row(ratio(products, number(len(row), "C"), "avg(h·x̂)")))
    return product((rstd, total((h[c], function("negative", product((row[c], aligned)))))))


rms_norm = Equation.of(
    __name__,
    title="RMSNorm",
    latex=r"y = g \odot \hat{x}, \quad \hat{x} = \frac{x}{\sqrt{\overline{x^2} + \epsilon}}, \quad "
    r"\overline{x^2} = \frac{1}{C}\sum_i x_i^2",
    derivative=r"\partial x = \frac{1}{\sqrt{\overline{x^2} + \epsilon}} \left( h - "
    r"\hat{x}\, \overline{h \odot \hat{x}} \right), \quad h = g \odot \partial y, \quad "
    r"\partial g = \sum_{\mathrm{rows}} \partial y \odot \hat{x}",
    inputs=(Symbol("x", "x", "(..., C)", "rows"), Symbol("gain", "g", "(C,)", "gain, optional (1 without it)")),
    result=Symbol("y", "y", "(..., C)", "normalised rows"),
)
