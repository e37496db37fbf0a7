"""The calls of a pass: which call of which definition computed a result, from which tensors.

They are read off the stack while the model runs, so a definition may be split into helpers or rearranged.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from copy import deepcopy
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
    """A call in the source without what is empty in this pass, and the tensors that it reads, but parameters."""

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
        """Return the innermost call of `called` that computed a result.

        Raises ByhandError if no such call did.
        """
        made = trace.made.get(result)
        for running in self.stacks[made[0].number] if made else ():
            node = _call_at(*running)
            if node is not None and ast.unparse(node.func) == called:
                path = Path(running[0].f_code.co_filename)
                made_here = _Made(running[0].f_locals, result.rpartition(".")[2]).visit(deepcopy(node))
                return ModelCall(path, node.lineno, shown_call(made_here), self._reads(trace, running))
        raise ByhandError(f"the model computes {result} by no call of {called}.")

    def _reads(self, trace: Pass, running: Running) -> tuple[str, ...]:
        under = [a for a, stack in zip(trace.applications, self.stacks, strict=True) if running in stack]
        inside = {id(tensor) for application in under for tensor in application.results}
        return tuple(dict.fromkeys(_from_outside(trace, under, inside)))


class _Made(ast.NodeTransformer):
    """Leave out a call's arguments for options and the KV cache, which the pass does not use; show the others bare."""

    def __init__(self, values: dict[str, Any], result: str) -> None:
        self._values, self._result = values, result

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Leave out `**scale`, `*before` and names of None; `*given(p, "b")` passes p["b"]."""
        node.args = [arg for each in node.args if (arg := self._passed(each)) is not None]
        node.keywords = [keyword for keyword in node.keywords if keyword.arg is not None]
        for keyword in node.keywords:
            if isinstance(keyword.value, ast.IfExp):
                keyword.value = ast.Constant(self._result)
        self.generic_visit(node)
        return node

    def _passed(self, node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Name):
            return None if self._values.get(node.id, node) is None else node
        if not isinstance(node, ast.Starred):
            return node
        if not isinstance(node.value, ast.Call):
            return None
        first, *names = node.value.args
        return ast.Subscript(first, names[0], ast.Load()) if names else first


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
