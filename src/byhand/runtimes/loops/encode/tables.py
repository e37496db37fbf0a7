"""Tables: a program's calls as rows of integers, each a kernel's number and its operands.

Places become offsets in the arena, kinds of copies their numbers; operands that a program leaves open (the share's
number, whether it adds to gradients) are filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from byhand.runtimes.loops import kernels
from byhand.runtimes.loops.kernels.formats.contract import number_of
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.program.calls import ADDS, LOSS_SLOT, OWN_SIGNAL, PART, PARTS, At, Call, Place, buffer_at
from byhand.runtimes.loops.program.controls import loss_slot, own_signal
from byhand.runtimes.loops.program.products import Copy

kernels.load()
NAMES = tuple(sorted(KERNELS))
OPCODES = {name: number for number, name in enumerate(NAMES)}
WIDTH = 1 + max(len(kernel.operands) for kernel in KERNELS.values())  # of a row
IN_PYTHON = -1  # the number of a step in Python


@dataclass(frozen=True)
class RowEncoder:
    """Encodes the calls of one share as rows of integers.

    number      the share's
    starts      offset in the arena of each kind of buffer
    parameters  each parameter's offset within parameters and gradients
    parts       number of threads that divide a call's work
    """

    number: int
    starts: Mapping[str, int]
    parameters: Mapping[str, int]
    parts: int = 1

    def offset(self, place: Place) -> int:
        """Return a place's offset in the arena."""
        buffer = buffer_at(place)
        offset = self.parameters[buffer.name] if buffer.kind in ("parameter", "gradient") else buffer.offset
        return self.starts[buffer.kind] + offset + (place.words if isinstance(place, At) else 0)

    def row(self, call: Call, adds: bool) -> list[int]:
        """Return the call as numbers."""
        if call.step is not None:
            return [IN_PYTHON] + [0] * (WIDTH - 1)
        late = {
            ADDS: int(adds), LOSS_SLOT: loss_slot(self.number), PART: self.number % self.parts, PARTS: self.parts,
            OWN_SIGNAL: own_signal(self.number),
        }  # fmt: skip
        numbers = [OPCODES[call.kernel]]
        for name in KERNELS[call.kernel].operands:
            operand = call.operands[name]
            if isinstance(operand, str):
                operand = late[operand]
            elif isinstance(operand, Copy):
                operand = number_of(operand)
            numbers.append(self.offset(operand) if isinstance(operand, Place) else int(operand))
        return numbers + [0] * (WIDTH - len(numbers))

    def table(self, calls: list[Call], adds: bool = False) -> np.ndarray:
        """Return calls as a table."""
        return np.array([self.row(call, adds) for call in calls], np.int64).reshape(-1, WIDTH)
