"""Rounded copies of operands of products: the only place where kernels round."""

from typing import Any

from byhand.runtimes.loops.kernels.formats.contract import COPIES, Copy, number_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix_of_bits


@compiled
def no_copy(memory, x, copy, format, source, row, rows, width):
    """Write no copy."""


def then(before: Any, number: int, kind: Copy) -> Any:
    """Extend `before` by the kind of copy of this number."""
    matrix, rounded = kind.matrix, kind.rounded

    @compiled
    def copied(memory, x, copy, format, source, row, rows, width):
        if format == number:
            bits, narrow = matrix_of_bits(memory, x, rows, width), matrix(memory, copy, rows, width)
            for c in range(width):
                narrow[row, c] = rounded(bits[source, c])
        else:
            before(memory, x, copy, format, source, row, rows, width)

    return copied


# Rounds row `source` of x (rows, width) into row `row` of its copy, unless the format is 0. Kernels call it for
# a row they have just written, while it is in the L1 cache.
copy_row = no_copy
for kind in COPIES:
    copy_row = then(copy_row, number_of(kind), kind)


@kernel
def rounded(memory, x, copy, format, n):
    """copy = x, rounded."""
    copy_row(memory, x, copy, format, 0, 0, 1, n)
