"""Update: the calls that end a training step.

Each thread reduces a range of the gradients over the shares, and its sum of squares. Then it updates its part of that
range element-wise, and the matrices assigned to it whole, so their products do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from byhand.runtimes.loops.kernels.update.matrices import BY_MATRIX, Matrix
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.program.calls import Call, Operand, barrier
from byhand.runtimes.loops.program.controls import CONTROLS, end, loss_slot
from byhand.runtimes.loops.program.regions import ALIGN, Alike, Regions
from byhand.update_rules import UpdateRule


def update_calls(arena: Regions, number: int, shares: int, scratch: int = 0, tiles: bool = False) -> list[Call]:
    """Return the calls of one thread; only the gradients' sum if NumPy makes the update.

    scratch  start of this thread's own memory, of the size that `scratch_of_matrices` returns
    tiles    multiply with register tiles, not BLAS
    """
    size = math.ceil(arena.size / shares / ALIGN) * ALIGN
    first, last = min(number * size, arena.size), min((number + 1) * size, arena.size)
    summed: dict[str, Operand] = {
        "gradient": arena.gradients + first, "stride": arena.size, "shares": shares, "n": last - first,
        "slot": loss_slot(number) + 1,
    }  # fmt: skip
    operations = (shares + 1) * (last - first)
    calls = [barrier(shares), Call("sum_shares", None, operations, summed, label="gradient_norm"), barrier(shares)]
    if not by_kernels(arena):
        return calls
    by_matrix = shared_out(matrices_of(arena), shares)
    for matrix in by_matrix[number] if by_matrix else ():
        calls += _whole(arena, matrix, shares, scratch, tiles)
    for group in arena.groups:
        start, stop = max(first, group.first), min(last, group.last)
        if start < stop and not _is_of_matrices(group):
            calls += _elements(arena, group, start, stop, shares)
    return calls


def _is_of_matrices(group: Alike) -> bool:
    """Return whether the update takes whole matrices, rather than elements."""
    return group.rule.equation.name in BY_MATRIX


def _elements(arena: Regions, group: Alike, start: int, stop: int, shares: int) -> list[Call]:
    """Return the calls that update and average a range of parameters."""
    equation, n = group.rule.equation, stop - start
    state = {kind: place + start - group.first for kind, place in group.state.items()}
    operands: dict[str, Operand] = {
        "theta": start, "gradient": arena.gradients + start, **state, "n": n, "settings": _settings(arena, group),
        "slot": CONTROLS + 1, "shares": shares,
    }  # fmt: skip
    calls = [Call(equation.name, None, equation.flops((n,))[0] if equation.flops else 0, operands)]
    return [*calls, *_averages(arena, start, 1, n, 0, shares)]


def _averages(arena: Regions, start: int, rows: int, width: int, stride: int, shares: int) -> list[Call]:
    """Return the call that averages parameters if the optimizer keeps averages."""
    operands: dict[str, Operand] = {
        "theta": start, "average": arena.averages + start, "rows": rows, "width": width, "stride": stride,
        "slot": CONTROLS + 1, "shares": shares,
    }  # fmt: skip
    n = rows * width
    return [Call("average", None, 3 * n, operands, touched=12 * n, label="averaged")] if arena.averages else []


def by_kernels(arena: Regions) -> bool:
    """Return whether every update has a kernel; otherwise NumPy updates all parameters."""
    named = (KERNELS.get(group.rule.equation.name) for group in arena.groups)
    return all(kernel is not None and kernel.settings is not None for kernel in named)


class UpdateSettings:
    """The controls that the update's kernels read: each group's rate, decay and the settings of its equation.

    starts  where the numbers of each group begin, and the end
    """

    def __init__(self, arena: Regions) -> None:
        self._groups: list[tuple[float, float, Callable[[int], Sequence[float]]]] = []
        counts: list[int] = []
        for group in arena.groups:
            static, kernel = group.rule.static, KERNELS.get(group.rule.equation.name)
            read = partial(kernel.settings, **static) if kernel and kernel.settings else lambda t: ()
            self._groups.append((group.rule.scale, static.get("weight_decay", 0.0), read))
            counts.append(2 + len(read(1)))
        self.starts = list(accumulate(counts, initial=end(arena.shares)))

    def write(self, numbers: np.ndarray, lr: float, t: int) -> None:
        """Write the values of step t, at a learning rate, to the end of the controls."""
        written: list[float] = []
        for scale, decay, read in self._groups:
            written += lr * scale, decay, *read(t)
        numbers[self.starts[0] :] = written


def _settings(arena: Regions, group: Alike) -> int:
    return UpdateSettings(arena).starts[arena.groups.index(group)]


@dataclass(frozen=True)
class Part:
    """A matrix that is updated whole: its parameter, its offset in the parameters' region, and its rule."""

    name: str
    group: Alike
    start: int

    @property
    def rule(self) -> UpdateRule:
        """The rule of its parameter, which may pack it with other matrices."""
        return self.group.rules[self.name]

    @property
    def products(self) -> int:
        """The FLOPs of its products."""
        return self.rule.products // self.rule.parameter.packed

    @property
    def shape(self) -> tuple[int, int, int]:
        """Its rows, columns and row stride."""
        *outer, stride = self.rule.parameter.shape
        return math.prod(outer), stride // self.rule.parameter.packed, stride


def matrices_of(arena: Regions) -> list[Part]:
    """Return the matrices that are updated whole."""
    found = []
    for group in filter(_is_of_matrices, arena.groups):
        for name, rule in group.rules.items():
            columns = rule.parameter.shape[-1] // rule.parameter.packed
            found += [Part(name, group, arena.place[name] + n * columns) for n in range(rule.parameter.packed)]
    return found


def shared_out(matrices: list[Part], shares: int) -> list[list[Part]]:
    """Assign matrices to threads greedily: the largest first, each to the least loaded thread."""
    found: list[list[Part]] = [[] for _ in range(shares)]
    loads = [0] * shares
    for part in sorted(matrices, key=lambda part: -part.products):
        least = loads.index(min(loads))
        found[least].append(part)
        loads[least] += part.products
    return found


def scratch_of_matrices(arena: Regions, tiles: bool) -> int:
    """Return how many float32 a thread needs besides the parameters and their state."""
    if not by_kernels(arena):
        return 0
    needed = (BY_MATRIX[part.rule.equation.name].scratch(*part.shape[:2], tiles) for part in matrices_of(arena))
    return max(needed, default=0)


def _whole(arena: Regions, part: Part, shares: int, scratch: int, tiles: bool) -> list[Call]:
    """Return the calls that update and average a matrix."""
    (rows, columns, stride), group = part.shape, part.group
    state = {kind: place + part.start - group.first for kind, place in group.state.items()}
    places: dict[str, Operand] = {"theta": part.start, "gradient": arena.gradients + part.start, **state}
    common: dict[str, Operand] = {
        "rows": rows, "columns": columns, "stride": stride, "settings": _settings(arena, group),
        "slot": CONTROLS + 1, "shares": shares,
    }  # fmt: skip
    matrix = Matrix(part.name, rows, columns, places, common, scratch, tiles)
    calls = BY_MATRIX[group.rule.equation.name].calls(matrix)
    return calls + _averages(arena, part.start, rows, columns, stride, shares)
