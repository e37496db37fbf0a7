r"""Low-rank update (LoRA): add the product of two thin matrices to a frozen one.

Equation    y' = y + s h B,   for rows y = x W and h = x A: so y' = x (W + s A B).
            For the matrices themselves, y = W and h = A: W' = W + s A B
Derivative  d_y = d_y',  d_h = s d_y' B^T,  d_B = s sum over rows of h^T d_y'
Shapes      y (..., O), h (..., r), up (r, O) -> y' (..., O)
Units       scale s = alpha / r: a larger rank r then moves y by about as much
Raises      ShapeError if rows or inner lengths differ
Source      Hu et al. 2021, arXiv:2106.09685
"""

from math import prod
from typing import Any

from byhand.engine.arrays import as_rows, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.rows import over
from byhand.engine.terms import cotangent_sum, element, indices, number, product, total
from byhand.equations.linear import linear

Adapter = tuple[Any, Any, float]  # A, B, s


def forward(y, h, up, *, scale):
    """Scale a row's r elements, not its O results."""
    require(up.ndim == 2, f"low_rank: up must be (r, O), not {up.shape}")
    require(
        y.shape == (*h.shape[:-1], up.shape[1]) and h.shape[-1] == up.shape[0],
        f"low_rank: y {y.shape} is not of the rows of h {h.shape} times up {up.shape}",
    )
    return y + ((scale * as_rows(h)) @ up).reshape(y.shape), (h, up)


def vjp(saved, d_y, *, scale):
    """Two thin products; y's cotangent passes unchanged."""
    h, up = saved
    d_rows = as_rows(d_y)
    return d_y, scale * (d_rows @ up.T).reshape(h.shape), (scale * as_rows(h)).T @ d_rows


def terms(index, inputs, result, *, scale):
    """The frozen matrix's element plus s times a row of h times a column of B."""
    *place, o = index
    row = over(
        inputs[2].shape[0], lambda r: product((element(inputs, 1, (*place, r), "h"), element(inputs, 2, (r, o), "B")))
    )
    return total((element(inputs, 0, index, "y"), product((number(scale, "s"), total(row)))))


def gradient_terms(saved, d_results, slot, index, *, scale):
    """The cotangent itself for y; s times cotangents times B for h, times h for B."""
    arrays = (*d_results, *saved)
    if slot == 0:
        return cotangent_sum([element(arrays, 0, index, "∂y")])
    if slot == 1:
        *row, r = index
        columns = saved[1].shape[1]
        parts = over(columns, lambda o: (element(arrays, 0, (*row, o), "∂y"), element(arrays, 2, (r, o), "B")))
    else:
        r, o = index
        rows = indices(saved[0].shape[:-1])
        parts = ((element(arrays, 0, (*row, o), "∂y"), element(arrays, 1, (*row, r), "h")) for row in rows)
    return product((number(scale, "s"), cotangent_sum(parts)))


def products(y, h, up, *, scale):
    """Two for each row and element of B; backward, as many for h and for B."""
    operations = 2 * prod(h) * up[1]
    return operations, 2 * operations


def flops(y, h, up, *, scale):
    """h is scaled, and the product added; backward, d_h and h are scaled."""
    return prod(h) + prod(y), 2 * prod(h)


low_rank = Equation.of(
    __name__,
    title="Low-rank update (LoRA)",
    latex=r"Y' = Y + s\, H B, \quad Y = X W, \quad H = X A",
    derivative=r"\partial Y = \partial Y', \quad \partial H = s\, \partial Y' B^{\top}, "
    r"\quad \partial B = s \sum_{\mathrm{rows}} H^{\top} \partial Y'",
    inputs=(
        Symbol("y", "Y", "(..., O)", "rows times the frozen matrix W"),
        Symbol("h", "H", "(..., r)", "the same rows times A: r numbers each"),
        Symbol("up", "B", "(r, O)", "the second thin matrix"),
    ),
    result=Symbol("z", "Y'", "(..., O)", "rows of the adapted matrix W + s A B"),
)


def adapted(y, x, adapter):
    """Add the update of an adapter (A, B, s) to rows y = x W + b; None means no adapter."""
    if adapter is None:
        return y
    down, up, scale = adapter
    name = y.name.rpartition(".")[2]
    return low_rank(y, linear(x, down, name=f"{name}_low"), up, scale=scale, name=f"{name}_adapted")
