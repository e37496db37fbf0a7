"""Reading alone: memory bandwidth, the limit of a single row's product with its weights."""

from byhand.runtimes.loops.kernels.threads import columns_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import vector


@kernel
def read(memory, words, x, n, out, part, parts):
    """Sum this thread's part of n words as integers, in four parallel streams, as a tile reads its panels."""
    low, high = columns_of(part, parts, n)
    quarter, start = (high - low) // 4, x + low
    a, b = vector(words, start, quarter), vector(words, start + quarter, quarter)
    c, d = vector(words, start + 2 * quarter, quarter), vector(words, start + 3 * quarter, quarter)
    total = 0
    for i in range(quarter):
        total += (a[i] ^ b[i]) + (c[i] ^ d[i])
    words[out + 16 * part] = total
