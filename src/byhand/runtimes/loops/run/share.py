"""Share: one thread's part of a plan while it runs, and its steps in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byhand.engine import Node
from byhand.engine.arrays import as_tuple
from byhand.engine.backward import apply_vjp
from byhand.runtimes.loops.encode.tables import RowEncoder
from byhand.runtimes.loops.program.calls import ADDS, Buffer, Call, Operand, PythonStep
from byhand.runtimes.loops.run.arena import Arena


@dataclass
class Share:
    """Its number of rows, its calls, and the arrays saved by its forward steps in Python.

    tables  one that overwrites gradients, and one that accumulates
    adds    this step has already written the share's gradients
    """

    batch: int
    calls: list[Call]
    inputs: dict[str, Buffer]
    arena: Arena
    encoder: RowEncoder
    tables: list[np.ndarray]
    saved: dict[int, Any] = field(default_factory=dict)
    adds: bool = False

    @property
    def number(self) -> int:
        """The thread's number."""
        return self.encoder.number

    def array(self, buffer: Buffer) -> np.ndarray:
        """Return a view of the buffer."""
        return self.arena.array(self.encoder.offset(buffer), buffer.shape, buffer.dtype == "int32")

    def run(self, call: Call) -> None:
        """Run a step in Python."""
        assert call.step
        assert call.node
        (self._forward if call.step.targets is None else self._backward)(call.node, call.step)

    def _forward(self, node: Node, step: PythonStep) -> None:
        arrays = [self.array(x).reshape(shape) if isinstance(x, Buffer) else x for x, shape in step.inputs]
        made, saved = node.equation.forward(*arrays, **node.static)
        if step.keeps:
            self.saved[id(node)] = saved
        for buffer, array in zip(step.results, as_tuple(made), strict=True):
            self.array(buffer)[...] = array

    def _backward(self, node: Node, step: PythonStep) -> None:
        given = [self.array(buffer) for buffer in step.results]
        d_result = tuple(given) if len(given) > 1 else given[0]
        d_inputs = apply_vjp(node, self.saved.pop(id(node)), d_result)
        for target, d in zip(step.targets or (), d_inputs, strict=True):
            if target and d is not None:
                self._put(*target, d)

    def _put(self, buffer: Buffer, adds: Operand, d: np.ndarray) -> None:
        place = self.array(buffer)
        if adds == 1 or (adds == ADDS and self.adds):
            place += d
        else:
            place[...] = d
