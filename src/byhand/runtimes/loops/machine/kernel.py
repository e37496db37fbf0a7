"""Kernel: a compiled loop called by a row of a plan's table, and its registration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.processor import cpu_features

# Arguments that do not come from a row's columns.
RESOURCES = ("memory", "words", "controls", "signals", "blas", "yield_to", "sleep")


@dataclass(frozen=True)
class Kernel:
    """A registered kernel.

    operands  its columns in a row of a table, in order
    rows      the operand that counts independent rows, which threads may divide; "" for none
    moves     each array's stride per such row, in elements: a number, or the operand that holds it
    computes  equations that it serves without a rule: updates are not in the recorded graph, and some equations are
              covered only along with others
    settings  (t, **static) -> the numbers that an update's kernel reads from the controls, after rate and decay
    costly    slow to compile, so compiled first
    needs     processor features that LLVM requires to compile it
    formula   the scalar function that it applies to each element; "" for a loop written for its equation alone
    """

    name: str
    function: Any
    operands: tuple[str, ...]
    rows: str = ""
    moves: Mapping[str, str | int] = field(default_factory=dict)
    computes: str = ""
    settings: Callable[..., tuple[float, ...]] | None = None
    costly: bool = False
    needs: tuple[str, ...] = ()
    formula: str = ""

    @property
    def compiles_here(self) -> bool:
        """Whether this processor has the features it needs."""
        return {*self.needs} <= {*cpu_features()}


KERNELS: dict[str, Kernel] = {}


def kernel(function: Callable[..., Any] | None = None, /, *, name: str = "", **facts: Any) -> Any:
    """Register a function as a kernel, with facts about it (see `Kernel`), and compile it as `compiled` does.

    name  the function's own if not given
    """
    if function is None:
        return lambda function: kernel(function, name=name, **facts)
    name = name or function.__name__
    if name in KERNELS:
        raise ValueError(f"two kernels are called {name}")
    operands = tuple(p for p in inspect.signature(function).parameters if p not in RESOURCES)
    made = compiled(function)
    KERNELS[name] = Kernel(name, made, operands, **facts)
    return made
