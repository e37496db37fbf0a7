r"""Matrix product, batched over leading axes.

Equation    Y[...,m,n] = sum over k of A[...,m,k] B[...,k,n]
Derivative  d_A = d_Y B^T,  d_B = A^T d_Y, each summed over the leading axes along which it was repeated
Shapes      a (..., M, K), b (..., K, N) -> (..., M, N); leading axes broadcast
Raises      ShapeError if the inner lengths differ, the leading axes do not broadcast, or an input is not a matrix
Source      Giles 2008, An extended collection of matrix derivative results
"""

from functools import partial
from itertools import zip_longest
from math import prod

from byhand.engine.arrays import namespace, require, sum_to_shape
from byhand.engine.equation import Equation, Symbol
from byhand.engine.rows import joined, over
from byhand.engine.terms import cotangent_sum, element, indices, product, total
from byhand.equations.broadcast import broadcast_index, require_broadcast


def forward(a, b):
    """Multiply the last two axes."""
    require(a.ndim >= 2 and b.ndim >= 2, f"matmul: needs matrices, not shapes {a.shape} and {b.shape}")
    require(a.shape[-1] == b.shape[-2], f"matmul: inner lengths of {a.shape} and {b.shape} differ")
    require_broadcast("matmul", a, b, inner=2)
    return a @ b, (a, b)


def vjp(saved, d_y):
    """Multiply the cotangent by the other input's transpose."""
    a, b = saved
    transpose = namespace(d_y).matrix_transpose
    return sum_to_shape(d_y @ transpose(b), a.shape), sum_to_shape(transpose(a) @ d_y, b.shape)


def terms(index, inputs, result):
    """A row times a column."""
    *batch, m, n = index
    a, _ = inputs
    at_a, at_b = (broadcast_index(tuple(batch), x.shape[:-2]) for x in inputs)
    return total(
        over(
            a.shape[-1],
            lambda k: product((element(inputs, 0, (*at_a, m, k), "A"), element(inputs, 1, (*at_b, k, n), "B"))),
        )
    )


def gradient_terms(saved, d_results, slot, index):
    """Cotangents times a row of B for A, times a column of A for B; for each matrix that read the element."""
    arrays, (*batch, i, j), (*batches, rows, columns) = (*d_results, *saved), index, d_results[0].shape
    shapes = [x.shape[:-2] for x in saved]

    def pair(at, k):
        place, other = (k, j) if slot else (i, k), broadcast_index(at, shapes[1 - slot])
        factor = (1, (*other, k, i), "A") if slot else (2, (*other, j, k), "B")
        return element(arrays, 0, (*at, *place), "∂Y"), element(arrays, *factor)

    read = [at for at in indices(batches) if broadcast_index(at, shapes[slot]) == tuple(batch)]
    return cotangent_sum(joined(*(over(rows if slot else columns, partial(pair, at)) for at in read)))


def products(a, b):
    """Two for each multiplied pair; backward, as many for each side."""
    lengths = zip_longest(reversed(a[:-2]), reversed(b[:-2]), fillvalue=1)
    operations = 2 * prod(max(pair) for pair in lengths) * a[-2] * a[-1] * b[-1]
    return operations, 2 * operations


matmul = Equation.of(
    __name__,
    title="Matrix product",
    latex=r"Y_{m,n} = \sum_k A_{m,k} B_{k,n}",
    derivative=r"\partial A = \partial Y\, B^{\top}, \quad \partial B = A^{\top} \partial Y",
    inputs=(Symbol("a", "A", "(..., M, K)", "left factor"), Symbol("b", "B", "(..., K, N)", "right factor")),
    result=Symbol("y", "Y", "(..., M, N)", "product"),
    seed_names=("nn::matmul2d", "nn::bmm"),
)
