"""The calls of a pass: which call of which definition computed a result, from which tensors.

They are read off the stack while the model runs, so a definition may be split into helpers or rearranged.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from byhand.book.finding import source
from byhand.engine import Equation, Tensor
from byhand.errors import ByhandError
from byhand.tracing.passes import Pass
from byhand.tracing.tracer import Application, Tracer
from where import syntax

Running = tuple[FrameType, int]  # a frame, and the instruction that it stands at


@dataclass(frozen=True)
class ModelCall:
    """A call in the source, and the tensors that the results computed under it read from outside, but parameters."""

    path: Path
    line: int
    text: str
    reads: tuple[str, ...]


class CallTracer(Tracer):
    """Record as a tracer does, and keep the package's calls that led to each application, the innermost first."""

    def __init__(self) -> None:
        super().__init__()
        self.stacks: list[list[Running]] = []

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Record the application and the stack."""
        frame, stack = sys._getframe(1), []
        while frame is not None:
            if Path(frame.f_code.co_filename).is_relative_to(source.PACKAGE):
                stack.append((frame, frame.f_lasti))
            frame = frame.f_back
        self.stacks.append(stack)
        return super().apply(equation, inputs, static, name)

    def call(self, trace: Pass, called: str, result: str) -> ModelCall:
        """Return the innermost call of `called`, as it is written, that computed a result.

        Raises ByhandError if no such call did.
        """
        made = trace.made.get(result)
        for running in self.stacks[made[0].number] if made else ():
            node = _call_at(*running)
            if node is not None and ast.unparse(node.func) == called:
                path = Path(running[0].f_code.co_filename)
                return ModelCall(path, node.lineno, shown_call(node), self._reads(trace, running))
        raise ByhandError(f"the model computes {result} by no call of {called}.")

    def _reads(self, trace: Pass, running: Running) -> tuple[str, ...]:
        under = [a for a, stack in zip(trace.applications, self.stacks, strict=True) if running in stack]
        inside = {id(tensor) for application in under for tensor in application.results}
        return tuple(dict.fromkeys(_from_outside(trace, under, inside)))


def shown_call(call: ast.Call) -> str:
    """Return a call as it is written."""
    return ast.unparse(call).replace("'", '"')


def _from_outside(trace: Pass, applications: list[Application], inside: set[int]) -> Iterator[str]:
    for application in applications:
        for tensor in application.inputs:
            if id(tensor) not in inside and not (tensor.node is None and tensor.requires_grad):
                yield trace.name(tensor)


def _call_at(frame: FrameType, instruction: int) -> ast.Call | None:
    """Return the call that a frame stands at."""
    span = _span(frame.f_code, instruction)
    nodes = ast.walk(syntax.tree(Path(frame.f_code.co_filename)))
    found = (n for n in nodes if isinstance(n, ast.Call))
    return next((n for n in found if (n.lineno, n.end_lineno, n.col_offset, n.end_col_offset) == span), None)


def _span(code: CodeType, instruction: int) -> tuple[int | None, ...] | None:
    return next(islice(code.co_positions(), instruction // 2, None), None)
