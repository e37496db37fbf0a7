r"""Orthogonalise: a few Newton-Schulz steps move all singular values of a matrix near 1 and keep its directions.

A singular value s of X_k becomes a s + b s^3 + c s^5; its singular vectors stay.

Equation    X_0 = G / (|G| + eps) with the Frobenius norm |G|;   X_{k+1} = a X_k + (b A + c A^2) X_k,   A = X_k X_k^T,
            with a = 3.4445, b = -4.775, c = 2.0315; the result is X_steps. Tall matrices are transposed
Derivative  of one step, with B = b A + c A^2 and D = d_X_{k+1} X_k^T:
            d_A = b D + c (D A + A D),   d_X_k = a d_X_{k+1} + B d_X_{k+1} + (d_A + d_A^T) X_k;
            d_G = (d_X_0 - G sum(d_X_0 * G) / (|G| (|G| + eps))) / (|G| + eps)
Shapes      g (..., M, N) -> (..., M, N)
Units       none; scaling g by a positive number changes nothing but the weight of eps
Raises      ShapeError if g is not a matrix
Source      Jordan et al. 2024, Muon: An optimizer for hidden layers in neural networks
"""

from dataclasses import replace
from math import prod

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, element_name, function, number, product, ratio, total

A, B, C = 3.4445, -4.775, 2.0315


def forward(g, *, steps=5, eps=1e-7):
    """Divide by the norm, so that no singular value exceeds 1; then apply the polynomial `steps` times."""
    require(g.ndim >= 2, f"orthogonalise: needs a matrix, not shape {g.shape}")
    norm = frobenius(g)
    x = g / (norm + eps)
    kept = []
    for _ in range(steps):
        kept.append(x)
        x = _upright(_step, x)
    return x, (g, norm, *kept)


def frobenius(g):
    """Return the Frobenius norm of each matrix, (..., 1, 1)."""
    xp = namespace(g)
    return xp.sqrt(xp.sum(g * g, axis=(-2, -1), keepdims=True))


def _step(x):
    gram = x @ namespace(x).matrix_transpose(x)
    return A * x + (B * gram + C * (gram @ gram)) @ x


def _step_back(d, x):
    transpose = namespace(x).matrix_transpose
    gram = x @ transpose(x)
    slope = d @ transpose(x)
    d_gram = B * slope + C * (slope @ gram + gram @ slope)
    return A * d + (B * gram + C * (gram @ gram)) @ d + (d_gram + transpose(d_gram)) @ x


def _upright(function, *arrays):
    """Apply a function of wide matrices; transpose tall ones, which makes the products smaller."""
    if arrays[0].shape[-2] <= arrays[0].shape[-1]:
        return function(*arrays)
    transpose = namespace(arrays[0]).matrix_transpose
    return transpose(function(*map(transpose, arrays)))


def vjp(saved, d_x, *, steps=5, eps=1e-7):
    """Propagate through each step, then through the division by the norm."""
    g, norm, *kept = saved
    xp = namespace(g)
    for x in reversed(kept):
        d_x = _upright(_step_back, d_x, x)
    along = xp.sum(d_x * g, axis=(-2, -1), keepdims=True)
    size = norm + eps
    norm_or_one = xp.where(norm == 0, xp.ones_like(norm), norm)  # g = 0: the norm has no slope, use 0
    return ((d_x - g * (along / (norm_or_one * size))) / size,)


def terms(index, inputs, result, *, steps=5, eps=1e-7):
    """The last step: a x, and a row of b A + c A^2 times a column of x; if it is the first, x is g / |G|."""
    *batch, i, j = index
    batch = tuple(batch)
    g = inputs[0]
    if g.shape[-2] > g.shape[-1]:
        i, j = j, i
    x = forward(g, steps=steps - 1, eps=eps)[0][batch]
    squares = (function("square", element(inputs, 0, (*batch, *place), "G")) for place in _places(x.shape))
    size = total((function("sqrt", total(squares)), number(eps, "eps")), "|G|")

    def at(row, column):
        place = (column, row) if g.shape[-2] > g.shape[-1] else (row, column)
        if steps > 1:
            return number(x[place], f"X[{place[0]},{place[1]}]")
        return ratio(element(inputs, 0, (*batch, *place), "G"), size, f"X[{place[0]},{place[1]}]")

    wide = namespace(x).astype(x, namespace(x).float64)
    wide = wide.T if g.shape[-2] > g.shape[-1] else wide
    gram = wide @ wide.T
    squared = gram[i, :] @ gram
    parts = [product((number(A, "a"), at(i, j)))]
    for k in range(len(gram)):
        once, twice = product((number(B, "b"), number(gram[i, k]))), product((number(C, "c"), number(squared[k])))
        parts.append(product((total((once, twice), f"B[{i},{k}]"), at(k, j))))
    return total(parts)


def rule_terms(index, inputs, *, steps=5, eps=1e-7):
    """All steps down to g, of which `terms` has only the last one."""
    *batch, i, j = index
    rows, columns = map(range, inputs[0].shape[-2:])
    g = [[element(inputs, 0, (*batch, row, column), "G") for column in columns] for row in rows]
    return iterated(g, (i, j), "|G|", steps, eps)


def iterated(g, place, norm, steps, eps):
    """Return an element of the result for a matrix of terms, whose norm is called `norm`."""
    (i, j), is_tall = place, len(g) > len(g[0])
    if is_tall:
        g, i, j = [*zip(*g, strict=True)], j, i
    squares = total(function("square", each) for row in g for each in row)
    size = total((function("sqrt", squares), number(eps, "eps")), norm)
    x = [[ratio(each, size) for each in row] for row in g]
    for _ in range(steps - 1):
        columns = [*zip(*x, strict=True)]
        x = [[_added(*one, mixed) for one in zip(row, columns, strict=True)] for row, mixed in _with_mixed(x)]
    column = [replace(row[j], label=element_name("X", (j, k) if is_tall else (k, j))) for k, row in enumerate(x)]
    mixed = [replace(each, label=element_name("B", (i, k))) for k, each in enumerate(_with_mixed(x)[i][1])]
    return _added(column[i], column, mixed)


def _added(own, column, mixed):
    return total((product((number(A, "a"), own)), *map(product, zip(mixed, column, strict=True))))


def _with_mixed(x):
    """Return each row of terms with that of b A + c A^2."""
    gram = _products(x, x)
    squared = _products(gram, gram)  # of a symmetric matrix
    return [
        (
            row,
            [total((product((number(B, "b"), p)), product((number(C, "c"), q)))) for p, q in zip(*both, strict=True)],
        )
        for row, *both in zip(x, gram, squared, strict=True)
    ]


def _products(a, b):
    return [[total(map(product, zip(row, other, strict=True))) for other in b] for row in a]


def _places(shape):
    return ((i, j) for i in range(shape[0]) for j in range(shape[1]))


def products(g, *, steps=5, eps=1e-7):
    """For each step A = X X^T, A A and B X; backward, those of B again, and six more."""
    *batch, m, n = g
    short, long = sorted((m, n))
    narrow, wide = 2 * prod(batch) * short**3, 2 * prod(batch) * short * short * long
    return steps * (2 * wide + narrow), steps * (4 * wide + 3 * narrow)


def flops(g, *, steps=5, eps=1e-7):
    """Norm and division 3 per element; each step 3 per element of A, 2 per element of X."""
    *batch, m, n = g
    short = min(m, n)
    each = 3 * short * short + 2 * m * n
    return prod(batch) * (3 * m * n + steps * each), prod(batch) * (
        6 * m * n + steps * (8 * short * short + 3 * m * n)
    )


orthogonalise = Equation.of(
    __name__,
    title="Orthogonalisation (Newton-Schulz)",
    latex=r"X_0 = \frac{G}{|G| + \epsilon}, \quad X_{k+1} = a X_k + B_k X_k, \quad "
    r"B_k = b A_k + c A_k^2, \quad A_k = X_k X_k^{\top}, \quad a = 3.4445, \quad b = -4.775, \quad c = 2.0315",
    derivative=r"\partial X_k = a\, \partial X_{k+1} + B_k\, \partial X_{k+1} + "
    r"\left( \partial A_k + \partial A_k^{\top} \right) X_k, \quad "
    r"\partial A_k = b D_k + c \left( D_k A_k + A_k D_k \right), \quad D_k = \partial X_{k+1} X_k^{\top}, \quad "
    r"\partial G = \frac{1}{|G| + \epsilon} \left( \partial X_0 - "
    r"\frac{\sum \partial X_0 \odot G}{|G| (|G| + \epsilon)}\, G \right)",
    inputs=(Symbol("g", "G", "(..., M, N)", "matrix"),),
    result=Symbol("x", "X_{steps}", "(..., M, N)", "nearly orthogonal matrix"),
)
