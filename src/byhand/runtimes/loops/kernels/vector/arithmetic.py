"""Functions of float32 in plain arithmetic, so that loops over them vectorise."""

import numpy as np

from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits, vector

F = np.float32
FLIP = np.int32(0x7FFFFFFF)


@compiled
def exp(x):
    """Return exp(x) in float32; NaN stays NaN. A call into libm would keep the loop scalar.

    Equation    exp(x) = 2^n exp(r),   n = round(x / ln 2),   r = x - n ln 2 in [-ln 2 / 2, ln 2 / 2]
    Units       relative error below 2e-7, for x in [-87, 88]; beyond, the value at the end of that range
    Source      Cephes, expf: the coefficients of the minimax polynomial of degree 5 for (exp(r) - 1 - r) / r^2
    """
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


@compiled
def tanh(x):
    """Return tanh(x) in float32; NaN stays NaN.

    Equation    tanh(x) = x + x s p(s),   s = x^2, below 5/8;   sign(x) (1 - 2 / (exp(2 |x|) + 1)) above
    Units       relative error below 3e-7
    Source      Cephes, tanhf
    """
    s = x * x
    p = F(-5.70498872745e-3)
    p = p * s + F(2.06390887954e-2)
    p = p * s - F(5.37397155531e-2)
    p = p * s + F(1.33314422036e-1)
    p = p * s - F(3.33332819422e-1)
    size = abs(x)
    far = F(1.0) - F(2.0) / (exp(size + size) + F(1.0))
    return x + x * s * p if size < F(0.625) else (far if x > F(0) else -far)


@compiled
def largest(words, start, n):
    """Return the largest of the n float32 at `start`, found through the bit patterns; `words` is the memory as int32.

    A maximum of floats stays a scalar loop, because NaN has no order. Floats order like their bits as integers, with
    the other bits of negative ones flipped; a positive NaN is larger than everything, so it stays visible.
    """
    bits = vector(words, start, n)
    most = np.int32(-0x80000000)
    for i in range(n):
        key = bits[i] ^ ((bits[i] >> np.int32(31)) & FLIP)
        most = max(most, key)
    return float_of_bits(most ^ ((most >> np.int32(31)) & FLIP))
