"""Share: one thread's part of a plan, and its calls as rows of integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byhand.runtimes.loops.lowering.controls import loss_slot, own_signal
from byhand.runtimes.loops.lowering.ir import At, Buffer, Call, Late, Operand
from byhand.runtimes.loops.lowering.table import IN_PYTHON, OPCODES, WIDTH
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.run.arena import Arena


@dataclass
class Share:
    """One thread's part of a plan: how many rows of the batch, where its memory begins, what it runs."""

    number: int
    batch: int
    calls: list[Call]
    inputs: dict[str, Buffer]
    arena: Arena
    constants: int
    values: int
    own: int = 0
    parts: int = 1
    saved: dict[int, Any] = field(default_factory=dict)
    adds: bool = False  # this step has written to the share's gradients already
    tables: list[np.ndarray] = field(default_factory=list)  # one that writes gradients, and one that adds to them

    def address(self, buffer: Buffer) -> int:
        """Return the offset of a buffer's first element in the arena."""
        match buffer.kind:
            case "parameter":
                return buffer.offset
            case "gradient":
                return self.arena.gradients + self.number * self.arena.region + buffer.offset
            case "constant":
                return self.constants + buffer.offset
            case "own":
                return self.own + buffer.offset
            case _:
                return self.values + buffer.offset

    def array(self, buffer: Buffer) -> np.ndarray:
        """Return the buffer's numbers, in place."""
        return self.arena.array(self.address(buffer), buffer.shape, buffer.dtype == "int32")

    def row(self, call: Call, adds: bool) -> list[int]:
        """Return the call as numbers."""
        if call.run is not None:
            return [IN_PYTHON] + [0] * (WIDTH - 1)
        numbers = [self._number(call.operands[name], adds) for name in KERNELS[call.kernel].operands]
        return [OPCODES[call.kernel], *numbers] + [0] * (WIDTH - 1 - len(numbers))

    def _number(self, operand: Operand, adds: bool) -> int:
        if isinstance(operand, Buffer):
            return self.address(operand)
        if isinstance(operand, At):
            return self.address(operand.buffer) + operand.words
        if isinstance(operand, Late):
            return {
                "adds": int(adds),
                "loss slot": loss_slot(self.number),
                "part": self.number,
                "parts": self.parts,
                "own signal": own_signal(self.number),
            }[operand.name]
        return int(operand)

    def table(self, calls: list[Call], adds: bool = False) -> np.ndarray:
        """Return calls as a table."""
        return np.array([self.row(call, adds) for call in calls], np.int64).reshape(-1, WIDTH)
