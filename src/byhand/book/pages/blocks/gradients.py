"""Generated numbers about differentiation: a Jacobian and a vector-Jacobian product."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.book.pages.blocks.markdown import block, display_lines
from byhand.engine import Tensor

A, B, D_Y = 2.0, 3.0, (1.0, 2.0)


def _numbers() -> tuple[Tensor, Tensor]:
    return Tensor(np.array(A), requires_grad=True, name="a"), Tensor(np.array(B), requires_grad=True, name="b")


def _row(result: int, d: float = 1.0) -> list[float]:
    """Return d times the derivatives of one of the two results, a b and a + b, with respect to a and b."""
    a, b = _numbers()
    (a * b, a + b)[result].backward(np.array(d))
    return [float(np.asarray(x.grad)) for x in (a, b)]


@block
def vjp_example(page: Path, lang: str) -> str:
    """Two numbers in, two out: the Jacobian, row by row, and the product of a cotangent with it."""
    jacobian = [_row(0), _row(1)]
    product = [p + q for p, q in zip(_row(0, D_Y[0]), _row(1, D_Y[1]), strict=True)]
    rows = r" \\ ".join(" & ".join(f"{x:g}" for x in row) for row in jacobian)
    given, result = (r" & ".join(f"{x:g}" for x in xs) for xs in (D_Y, product))
    worked = r" & ".join(
        " + ".join(f"{d:g} \\cdot {row[k]:g}" for d, row in zip(D_Y, jacobian, strict=True)) for k in (0, 1)
    )
    return display_lines(
        [
            rf"x = (a, b) = ({A:g}, {B:g}), \quad y = (a b,\; a + b) = ({A * B:g}, {A + B:g})",
            rf"J = \begin{{bmatrix}} b & a \\ 1 & 1 \end{{bmatrix}} = \begin{{bmatrix}} {rows} \end{{bmatrix}}",
            rf"\partial x = \partial y\, J = \begin{{bmatrix}} {given} \end{{bmatrix}} J"
            rf" = \begin{{bmatrix}} {worked} \end{{bmatrix}} = \begin{{bmatrix}} {result} \end{{bmatrix}}",
        ]
    )
