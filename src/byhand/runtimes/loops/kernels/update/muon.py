"""Kernels of `muon`: one thread updates a whole matrix, so that its bits do not depend on the number of threads.

`muon_momentum` writes the momentum and, divided by its norm, Nesterov's direction; products and `newton_schulz` make
it nearly orthogonal; `muon` applies it. A matrix may be packed with others side by side: `stride` is the distance of
its rows. Without an update (see `gradient_norm.py`) the momentum stays unchanged.
"""

import math
from itertools import accumulate

import numpy as np

from byhand.equations.muon import STEPS
from byhand.equations.orthogonalise import A, B, C
from byhand.runtimes.loops.kernels.products.product import Shape, product_operands
from byhand.runtimes.loops.kernels.products.tiles import TILES
from byhand.runtimes.loops.kernels.update.gradient_norm import clip_of
from byhand.runtimes.loops.kernels.update.matrices import BY_MATRIX, ByMatrix, Matrix
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, vector
from byhand.runtimes.loops.program.calls import Call
from byhand.runtimes.loops.program.regions import padded

F = np.float32
EPS = 1e-7


def settings(t, *, momentum, **_):
    """Return the control that the kernels read after rate and decay."""
    return (momentum,)


@kernel(computes="muon", settings=settings)
def muon(memory, controls, theta, x, rows, columns, stride, settings, slot, shares):
    """theta -= lr (s x + wd theta),  s = sqrt(max(1, columns / rows))."""
    if clip_of(controls, slot, shares) < F(0):
        return
    lr, wd = F(controls[settings]), F(controls[settings + 1])
    s = F(math.sqrt(max(1.0, columns / rows)))
    for i in range(rows):
        p, direction = vector(memory, theta + i * stride, columns), vector(memory, x + i * columns, columns)
        for j in range(columns):
            p[j] -= lr * (s * direction[j] + wd * p[j])


@kernel(computes="muon")
def muon_momentum(memory, controls, gradient, m, x, rows, columns, stride, settings, slot, shares):
    """m' = mu m + (1 - mu) g;  x = n / (|n| + eps),  n = mu m' + (1 - mu) g."""
    clip = clip_of(controls, slot, shares)
    if clip < F(0):
        return
    mu, one = F(controls[settings + 2]), F(1.0 - controls[settings + 2])
    total = 0.0
    for i in range(rows):
        g, mean = vector(memory, gradient + i * stride, columns), vector(memory, m + i * stride, columns)
        out = vector(memory, x + i * columns, columns)
        squares = F(0)
        for j in range(columns):
            d = g[j] * clip
            kept = mu * mean[j] + one * d
            ahead = mu * kept + one * d
            mean[j] = kept
            out[j] = ahead
            squares += ahead * ahead
        total += squares
    scale = F(1.0 / (math.sqrt(total) + EPS))
    whole = vector(memory, x, rows * columns)
    for i in range(rows * columns):
        whole[i] *= scale


@kernel(computes="orthogonalise")
def newton_schulz(memory, gram, squared, n):
    """squared = a I + b A + c A A, of A and A A: the next X is its product with X."""
    once, twice = matrix(memory, gram, n, n), matrix(memory, squared, n, n)
    for i in range(n):
        for j in range(n):
            twice[i, j] = F(B) * once[i, j] + F(C) * twice[i, j]
        twice[i, i] += F(A)


def _places(m: int, n: int, tiles: bool) -> list[int]:
    """Return where, from the scratch on, X, the next X, A, A A and the scratch of products begin; and the end."""
    short = min(m, n)
    products = max(TILES["tiled_gemm"].scratch(*p) for p in _shapes(m, n)) if tiles else 0
    return list(accumulate(map(padded, (m * n, m * n, short * short, short * short, products)), initial=0))


def _shapes(m: int, n: int) -> list[Shape]:
    """Return the shapes of the products: of A, of A A, of the next X."""
    short, tall = min(m, n), m > n
    return [
        (short, short, max(m, n), tall, not tall),
        (short, short, short, False, False),
        (m, n, short, False, False),
    ]


def _calls(of: Matrix) -> list[Call]:
    """Return the calls by which Muon updates one matrix."""
    m, n, short = of.rows, of.columns, min(of.rows, of.columns)
    x, following, gram, squared, products, _ = (of.scratch + place for place in _places(m, n, of.tiles))
    of_gram, of_square, of_x = _shapes(m, n)

    def product(a: int, b: int, c: int, shape: Shape) -> Call:
        rows, columns, inner, _, _ = shape
        operands = product_operands(a, b, c, shape)
        if of.tiles:
            operands |= {"start": 0, "bias": 0, "scratch": products}
        touched = 4 * (rows * inner + inner * columns + rows * columns)
        return Call(
            "tiled_gemm" if of.tiles else "gemm", None, 2 * rows * columns * inner, operands, touched=touched,
            label="orthogonalise", place=of.name,
        )  # fmt: skip

    operands = {**of.places, **of.common, "x": x}
    calls = [Call("muon_momentum", None, 9 * m * n, operands, touched=16 * m * n, place=of.name)]
    for _ in range(STEPS):
        calls += [
            product(x, x, gram, of_gram),
            product(gram, gram, squared, of_square),
            Call(
                "newton_schulz", None, 3 * short * short, {"gram": gram, "squared": squared, "n": short},
                touched=12 * short * short, place=of.name,
            ),
            product(*((x, squared) if m > n else (squared, x)), following, of_x),
        ]  # fmt: skip
        x, following = following, x
    return [*calls, Call("muon", None, 5 * m * n, {**operands, "x": x}, touched=12 * m * n, place=of.name)]


BY_MATRIX["muon"] = ByMatrix(lambda rows, columns, tiles: _places(rows, columns, tiles)[-1], _calls)
