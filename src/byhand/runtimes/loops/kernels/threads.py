"""How threads divide a row, and the kernel of the barrier."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled, instruction
from byhand.runtimes.loops.machine.views import address_of
from byhand.runtimes.loops.program.controls import ARRIVALS, LATE, RELEASED

SPINS, YIELDS = 20_000, 8  # some fifty microseconds: longer than waits between barriers without disturbance
PATIENCE, NAP = 400, np.int32(50)  # yields before a thread sleeps; microseconds of sleep


@compiled
def columns_of(part, parts, width):
    """Return the first column and the end of a thread's part, on cache lines."""
    size = (width + 16 * parts - 1) // (16 * parts) * 16
    return min(part * size, width), min((part + 1) * size, width)


@instruction("void", "int64", "int32")
def _call(builder: Any, address: Any, number: Any) -> None:
    """Call the function at `address` with a number, which it may ignore."""
    kind = ir.FunctionType(ir.IntType(32), [number.type])
    builder.call(builder.inttoptr(address, kind.as_pointer()), [number])


@instruction("int64", "int64", "int64")
def _atomic_add(builder: Any, address: Any, value: Any) -> Any:
    """Add to the int64 at `address`; earlier writes become visible to every thread."""
    return builder.atomic_rmw("add", builder.inttoptr(address, ir.IntType(64).as_pointer()), value, "seq_cst")


@instruction("int64", "int64")
def _atomic_load(builder: Any, address: Any) -> Any:
    """Read the int64 at `address`; earlier writes of other threads become visible."""
    return builder.load_atomic(builder.inttoptr(address, ir.IntType(64).as_pointer()), "acquire", 8)


@kernel
def barrier(signals, own, shares, yield_to, sleep):
    """Wait until every share has arrived.

    A thread that waits long sleeps: the system can move the program that delays another thread to its core.

    own  where this share counts its arrivals, which tell the total to wait for
    """
    base = address_of(signals)
    signals[own] += 1
    wanted = signals[own] * shares
    _atomic_add(base + 8 * ARRIVALS, 1)
    spins = 0
    while _atomic_load(base + 8 * ARRIVALS) < wanted and _atomic_load(base + 8 * RELEASED) == 0:
        spins += 1
        if spins > SPINS:
            if spins == SPINS + YIELDS:
                _atomic_add(base + 8 * LATE, 1)
            _call(yield_to if spins <= SPINS + PATIENCE else sleep, NAP)
