r"""Linear layer over the last axis.

Equation    y = x W + b
Derivative  d_x = d_y W^T,  d_W = sum over rows of x^T d_y,  d_b = sum over rows of d_y
Shapes      x (..., I), weight (I, O), bias (O,) or none -> y (..., O)
Raises      ShapeError if x's last axis is not I, or the bias is not (O,)
Source      Giles 2008, An extended collection of matrix derivative results
"""

from math import prod

from byhand.engine.arrays import as_rows, namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.rows import joined, over
from byhand.engine.terms import cotangent_sum, element, indices, product, total


def forward(x, weight, bias=None):
    """Multiply all rows by the weight in one matrix product."""
    require(weight.ndim == 2, f"linear: weight must be (I, O), not {weight.shape}")
    require(
        x.shape[-1] == weight.shape[0], f"linear: x {x.shape} and weight {weight.shape} differ in the inner length"
    )
    require(bias is None or bias.shape == weight.shape[1:], f"linear: bias must be ({weight.shape[1]},)")
    y = as_rows(x) @ weight
    saved = (x, weight) if bias is None else (x, weight, bias)
    y = y if bias is None else y + bias
    return y.reshape((*x.shape[:-1], weight.shape[1])), saved


def vjp(saved, d_y):
    """Two matrix products and a column sum."""
    x, weight, *bias = saved
    d_rows = as_rows(d_y)
    d_x = (d_rows @ weight.T).reshape(x.shape)
    d_weight = as_rows(x).T @ d_rows
    return (d_x, d_weight, namespace(d_y).sum(d_rows, axis=0)) if bias else (d_x, d_weight)


def terms(index, inputs, result):
    """A row times a column, plus the bias."""
    *place, o = index
    weight = inputs[1]
    products = over(
        weight.shape[0], lambda i: product((element(inputs, 0, (*place, i), "x"), element(inputs, 1, (i, o), "W")))
    )
    bias = (element(inputs, 2, (o,), "b"),) if len(inputs) > 2 else ()
    return total(joined(products, bias))


def gradient_terms(saved, d_results, slot, index):
    """Cotangents times weights for x, times elements of x for a weight; their sum for the bias."""
    arrays, rows = (*d_results, *saved), indices(saved[0].shape[:-1])
    if slot == 2:
        return cotangent_sum(element(arrays, 0, (*row, *index), "∂y") for row in rows)
    if slot:
        i, o = index
        return cotangent_sum(
            (element(arrays, 0, (*row, o), "∂y"), element(arrays, 1, (*row, i), "x")) for row in rows
        )
    *row, i = index
    columns = saved[1].shape[1]
    return cotangent_sum(
        over(columns, lambda o: (element(arrays, 0, (*row, o), "∂y"), element(arrays, 2, (i, o), "W")))
    )


def products(x, weight, bias=None):
    """Two for each weight and row; backward, as many for x and for the weight."""
    operations = 2 * prod(x) * weight[1]
    return operations, 2 * operations


def flops(x, weight, bias=None):
    """The bias, added and summed over rows."""
    added = prod(x[:-1]) * weight[1] if bias else 0
    return added, added


linear = Equation.of(
    __name__,
    title="Linear layer",
    latex=r"y = x W + b",
    derivative=r"\partial x = \partial y\, W^{\top}, \quad \partial W = x^{\top} \partial y, "
    r"\quad \partial b = \sum_{\mathrm{rows}} \partial y",
    inputs=(
        Symbol("x", "x", "(..., I)", "rows"),
        Symbol("weight", "W", "(I, O)", "weight, [in, out]"),
        Symbol("bias", "b", "(O,)", "bias, optional"),
    ),
    result=Symbol("y", "y", "(..., O)", "rows"),
    seed_names=("nn::linear_lastdim",),
)
