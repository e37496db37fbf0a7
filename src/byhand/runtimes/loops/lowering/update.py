"""Update: the calls that end a training step, over each thread's range of the parameters."""

from __future__ import annotations

import math

from byhand.engine.equation import registry
from byhand.runtimes.loops.lowering.controls import CONTROLS, MATRIX_DECAY, VECTOR_DECAY, loss_slot
from byhand.runtimes.loops.lowering.ir import Call, Operand, meet
from byhand.runtimes.loops.lowering.layout import ALIGN
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.run.arena import Arena


def update_calls(arena: Arena, number: int, shares: int) -> list[Call]:
    """Return the calls that sum, measure and apply the gradients of this thread's range of the parameters."""
    size = math.ceil(arena.region / shares / ALIGN) * ALIGN
    first, last = min(number * size, arena.region), min((number + 1) * size, arena.region)
    equation = registry[KERNELS["adamw"].computes]
    summed: dict[str, Operand] = {
        "gradient": arena.gradients + first, "stride": arena.region, "shares": shares, "n": last - first,
        "slot": loss_slot(number) + 1,
    }  # fmt: skip
    calls = [meet(shares), Call("sum_shares", None, (shares + 1) * (last - first), summed), meet(shares)]
    ranges = (
        (first, min(last, arena.matrices_end), MATRIX_DECAY),
        (max(first, arena.matrices_end), last, VECTOR_DECAY),
    )
    for start, stop, decay in ranges:
        if start < stop:
            operands: dict[str, Operand] = {
                "theta": start, "gradient": arena.gradients + start, "m": arena.first_moments + start,
                "v": arena.second_moments + start, "n": stop - start, "decay": decay, "slot": CONTROLS + 1,
                "shares": shares,
            }  # fmt: skip
            operations = equation.flops((stop - start,))[0] if equation.flops else 0
            calls.append(Call("adamw", None, operations, operands))
    return calls
