"""Division: the calls of generation shared among threads, which meet between them.

A kernel divides its work itself, by `part` and `parts`, or its registration says which rows are independent.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byhand.runtimes.loops.lowering.ir import At, Buffer, Call, Operand
from byhand.runtimes.loops.lowering.table import OPCODES
from byhand.runtimes.loops.machine.kernel import KERNELS


def part_of(call: Call, part: int, parts: int) -> Call | None:
    """Return one thread's part of a call: its rows, or all if the kernel divides them itself, or nothing."""
    if "parts" in call.operands:
        return divided(call, parts)
    kernel = KERNELS.get(call.kernel)
    if kernel is None or not kernel.rows or call.operands.get("batch", 1) != 1:
        return call if part == 0 else None
    count = _integer(call.operands[kernel.rows])
    low, high = part * count // parts, (part + 1) * count // parts
    operands, touched = dict(call.operands) | {kernel.rows: high - low}, call.bytes
    for name, stride in kernel.moves.items():
        array = call.operands[name]
        if array == 0:
            continue  # a product without a start
        operands[name] = _moved(array, low * (stride if isinstance(stride, int) else _integer(operands[stride])))
        touched -= 4 * array.words * (count - high + low) // count if isinstance(array, Buffer) else 0
    return replace(call, operands=operands, flops=call.flops * (high - low) // count, touched=touched)


def divided(call: Call, parts: int) -> Call:
    """Return the call with a thread's part of its cost, if its kernel divides the work itself."""
    if "parts" not in call.operands:
        return call
    return replace(call, flops=call.flops // parts, touched=call.bytes // parts)


def _integer(operand: Operand) -> int:
    assert isinstance(operand, int)
    return operand


def _moved(operand: Operand, by: int) -> Operand:
    if isinstance(operand, At):
        return At(operand.buffer, operand.start + by)
    assert isinstance(operand, Buffer)
    return At(operand, by)


def in_turn(tables: list[np.ndarray]) -> np.ndarray:
    """Return the rows of all threads for one: what each does up to a barrier, thread after thread."""
    stretches = [np.split(table, np.flatnonzero(table[:, 0] == OPCODES["barrier"])) for table in tables]
    rows = np.concatenate([part for parts in zip(*stretches, strict=True) for part in parts])
    return rows[rows[:, 0] != OPCODES["barrier"]]
