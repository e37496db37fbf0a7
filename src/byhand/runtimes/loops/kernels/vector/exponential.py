"""exp in plain arithmetic, so that a loop over it becomes vector instructions (a call into libm would not).

Equation    exp(x) = 2^n exp(r),   n = round(x / ln 2),   r = x - n ln 2 in [-ln 2 / 2, ln 2 / 2]
Units       relative error below 2e-7, for x in [-87, 88]; beyond, the value at the end of that range
Source      Cephes, expf: the coefficients of the minimax polynomial of degree 5 for (exp(r) - 1 - r) / r^2
"""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits

F = np.float32


@compiled
def exp(x):
    """Return exp(x) in float32; NaN stays NaN."""
    clipped = F(88.0) if x > F(88.0) else (F(-87.0) if x < F(-87.0) else x)
    n = np.floor(clipped * F(1.44269504) + F(0.5))
    r = clipped - n * F(0.693359375) + n * F(2.12194440e-4)
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    return (p * r * r + r + F(1.0)) * float_of_bits((np.int32(n) + np.int32(127)) << np.int32(23))
