"""Kernel of the barrier: no thread goes on until all have come."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

from typing import Any

from llvmlite import ir

from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import intrinsic, types
from byhand.runtimes.loops.machine.views import address_of

LATE, STOPPED = 2, 3  # signals: long waits at barriers, and that the threads stop after this token
SPINS, YIELDS = 20_000, 8  # some fifty microseconds; more than the work between two barriers lets a thread wait


@intrinsic
def _call(typingctx: Any, address: Any) -> Any:
    """Call the function without arguments at `address`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def _atomic_add(typingctx: Any, address: Any, value: Any) -> Any:
    """Add to the int64 at `address`; every thread sees all that was written before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _atomic_load(typingctx: Any, address: Any) -> Any:
    """Read the int64 at `address`, and after it see all that was written before it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.int64), codegen


@kernel
def barrier(signals, own, shares, yield_to):
    """Wait until every share has come here.

    signals[1] counts all arrivals, signals[own] this share's, which says what to wait for; signals[0] != 0 means that
    a share has given up; signals[LATE] counts the waits that were long: somebody else uses a core.
    """
    base = address_of(signals)
    signals[own] += 1
    wanted = signals[own] * shares
    _atomic_add(base + 8, 1)
    spins = 0
    while _atomic_load(base + 8) < wanted and _atomic_load(base) == 0:
        spins += 1
        if spins > SPINS:
            if spins == SPINS + YIELDS:
                _atomic_add(base + 8 * LATE, 1)
            _call(yield_to)
