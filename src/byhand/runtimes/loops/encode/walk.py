"""Walk: the compiled loop over a plan's table; no Python runs between its kernels.

A row of the table is a kernel's number and its operands. Every kernel is compiled alone, into an object file with
one entry point, `entry(row, resources)`: the address of its row, and that of ten numbers, the address and the length
of each of

    memory    the arena, float32        words   the same bytes as int32
    controls  float64: learning rate and the like in, losses and norms out (see `program/controls.py`)
    signals   int64: counters of the barriers
    blas      int64: addresses of SGEMM, and of the system's yield and sleep

So a plan needs only its own kernels, and no symbol of one can resolve to another's.
"""

from __future__ import annotations

from byhand.runtimes.loops.encode.tables import WIDTH
from byhand.runtimes.loops.machine.kernel import RESOURCES
from byhand.runtimes.loops.machine.native import compiled, flush_denormals, put_word, restore_denormals, run_at, word
from byhand.runtimes.loops.program.controls import STOPPED

SIGNALS = 2 * RESOURCES.index("signals")
TABLE, FIRST, LAST, TIMES, ADDRESSES, OUTCOME = range(6)  # indices in `rows`


@compiled
def walk(rows, resources):
    """Run rows first .. last of a table, repeatedly, or until the threads agree to stop (`sample`).

    The outcome is 0, or 1 + row if its kernel is not loaded, or -1 - row if the kernel failed.
    """
    table, first, last = word(rows, TABLE), word(rows, FIRST), word(rows, LAST)
    addresses, signals, outcome = word(rows, ADDRESSES), word(resources, SIGNALS), 0
    mode = flush_denormals()
    for i in range(word(rows, TIMES) * (last - first)):
        if i > 0 and i % (last - first) == 0 and word(signals, STOPPED) != 0:  # only between repetitions
            break
        number = first + i % (last - first)
        row = table + 8 * WIDTH * number
        kernel = word(addresses, word(row, 0))
        if kernel == 0:
            outcome = 1 + number
            break
        if run_at(kernel, row, resources) != 0:
            outcome = -1 - number
            break
    restore_denormals(mode)
    put_word(rows, OUTCOME, outcome)
