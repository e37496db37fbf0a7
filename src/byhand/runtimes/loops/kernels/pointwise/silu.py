"""Kernels of the activation `silu`: after `linear` with its bias, or alone, in the passes of `gelu`.

Equation    silu = v s,   s = 1 / (1 + exp(-v)),   slope = s + v s (1 - s)
"""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.kernels.pointwise.activation import (
    backward_alone,
    backward_gelu,
    forward_alone,
    forward_gelu,
)
from byhand.runtimes.loops.kernels.products import linear
from byhand.runtimes.loops.kernels.vector.arithmetic import exp, to_bfloat16
from byhand.runtimes.loops.lowering.rules import Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix, matrix_of_bfloat16, matrix_of_bits, vector

F = np.float32


@compiled
def silu_of(v):
    """Return silu(v)."""
    return v / (F(1.0) + exp(-v))


@compiled
def silu_and_slope(v):
    """Return silu(v) and its derivative."""
    s = F(1.0) / (F(1.0) + exp(-v))
    g = v * s
    return g, s + (g - g * s)


@kernel(rows="rows", moves={"x": "width", "y": "width"})
def bias_silu(memory, x, bias, y, copy, rows, width, kept):
    """y = silu(x + bias), and a copy in bfloat16; x becomes the slope there. Unless `kept`, y has but one row."""
    a, o, b = matrix(memory, x, rows, width), matrix(memory, y, rows, width), vector(memory, bias, width)
    bits, low = matrix_of_bits(memory, y, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
    for i in range(rows):
        at = i if kept else 0
        for c in range(width):
            o[at, c], a[i, c] = silu_and_slope(a[i, c] + b[c])
        if copy:
            for c in range(width):
                low[i, c] = to_bfloat16(bits[at, c])


@kernel
def silu(memory, x, y, n):
    """y = silu(x)."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = silu_of(a[i])


@kernel
def times_silu_slope(memory, d, x, n):
    """d *= slope at x."""
    a, b = vector(memory, d, n), vector(memory, x, n)
    for i in range(n):
        a[i] *= silu_and_slope(b[i])[1]


register(Rule(
    name="linear + silu", covers=(("transpose", ""), "linear", "silu"), kernel="bias_silu", stages=("train", "fill"),
    match=linear.match_before, forward=forward_gelu, backward=backward_gelu,
    reason="bias, gate and derivative in one pass over the widest array; going back is one product, not another exp",
))  # fmt: skip
register(Rule(
    name="silu", covers=("silu",), kernel="silu", stages=("train", "fill"), forward=forward_alone,
    backward=backward_alone,
))  # fmt: skip
