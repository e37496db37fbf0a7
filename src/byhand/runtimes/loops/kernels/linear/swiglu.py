"""The gate `swiglu` as functions of two numbers; `gate_passes.py` makes its kernels and rules of them."""

# pyright: reportMissingImports=false
from byhand.runtimes.loops.kernels.linear.activations import silu_and_slope, silu_of
from byhand.runtimes.loops.kernels.linear.gate_passes import gates
from byhand.runtimes.loops.machine.native import compiled


@compiled
def swiglu_of(g, u):
    """Return silu(g) u."""
    return silu_of(g) * u


@gates(computes="swiglu", value=swiglu_of)
@compiled
def swiglu_and_slopes(g, u):
    """Return silu(g) u and its slopes, u silu'(g) at g and silu(g) at u."""
    opened, slope = silu_and_slope(g)
    return opened * u, slope * u, opened
