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

from byhand.equations.muon import STEPS
from byhand.equations.orthogonalise import orthogonalise
from byhand.runtimes.loops.kernels.products.product import Shape, product_operands
from byhand.runtimes.loops.kernels.products.tiles import TILES
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.program.calls import Call, Operand, barrier
from byhand.runtimes.loops.program.controls import CONTROLS, end, loss_slot
from byhand.runtimes.loops.program.regions import ALIGN, Alike, Regions, padded


def update_calls(arena: Regions, number: int, shares: int, scratch: int = 0, tiles: bool = False) -> list[Call]:
    """Return the calls of one thread; only the gradients' sum if NumPy makes the update.

    scratch  where memory begins that only this thread uses, as much as `scratch_of_matrices` says
    tiles    register tiles multiply, not BLAS
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
        calls += _muon(arena, matrix, shares, scratch, tiles)
    for group in arena.groups:
        start, stop = max(first, group.first), min(last, group.last)
        if start < stop and not _is_of_matrices(group):
            calls += _elements(arena, group, start, stop, shares)
    return calls


def _is_of_matrices(group: Alike) -> bool:
    """Return whether whole matrices are updated, not element by element."""
    return "n" not in KERNELS[group.rule.equation.name].operands


def _elements(arena: Regions, group: Alike, start: int, stop: int, shares: int) -> list[Call]:
    """Return the calls that update a range of parameters, and average it."""
    equation, n = group.rule.equation, stop - start
    state = {kind: place + start - group.first for kind, place in group.state.items()}
    operands: dict[str, Operand] = {
        "theta": start, "gradient": arena.gradients + start, **state, "n": n, "settings": _settings(arena, group),
        "slot": CONTROLS + 1, "shares": shares,
    }  # fmt: skip
    calls = [Call(equation.name, None, equation.flops((n,))[0] if equation.flops else 0, operands)]
    return [*calls, *_averages(arena, start, 1, n, 0, shares)]


def _averages(arena: Regions, start: int, rows: int, width: int, stride: int, shares: int) -> list[Call]:
    """Return the call that averages parameters, if the optimizer keeps averages."""
    operands: dict[str, Operand] = {
        "theta": start, "average": arena.averages + start, "rows": rows, "width": width, "stride": stride,
        "slot": CONTROLS + 1, "shares": shares,
    }  # fmt: skip
    n = rows * width
    return [Call("average", None, 3 * n, operands, touched=12 * n, label="averaged")] if arena.averages else []


def by_kernels(arena: Regions) -> bool:
    """Return whether every update has a kernel; else NumPy makes the update of all parameters."""
    named = (KERNELS.get(group.rule.equation.name) for group in arena.groups)
    return all(kernel is not None and kernel.settings is not None for kernel in named)


class UpdateSettings:
    """What the update's kernels read of the controls: each group's rate, decay and the settings of its equation.

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
        """Write what step t reads, at a learning rate, to the end of the controls."""
        written: list[float] = []
        for scale, decay, read in self._groups:
            written += lr * scale, decay, *read(t)
        numbers[self.starts[0] :] = written


def _settings(arena: Regions, group: Alike) -> int:
    return UpdateSettings(arena).starts[arena.groups.index(group)]


@dataclass(frozen=True)
class Matrix:
    """A matrix that is updated whole: its parameter, where it begins in the parameters' region, and its shape.

    stride  from one row to the next, more than the columns if several matrices are packed in one array
    """

    name: str
    group: Alike
    start: int
    rows: int
    columns: int
    stride: int

    @property
    def operations(self) -> int:
        """Those of its products."""
        assert orthogonalise.products
        return orthogonalise.products((self.rows, self.columns), steps=STEPS)[0]


def matrices_of(arena: Regions) -> list[Matrix]:
    """Return the matrices that are updated whole."""
    found = []
    for group in filter(_is_of_matrices, arena.groups):
        for name, rule in group.rules.items():
            *outer, stride = rule.parameter.shape
            columns = stride // rule.parameter.packed
            starts = (arena.place[name] + place * columns for place in range(rule.parameter.packed))
            found += [Matrix(name, group, start, math.prod(outer), columns, stride) for start in starts]
    return found


def shared_out(matrices: list[Matrix], shares: int) -> list[list[Matrix]]:
    """Assign matrices to threads greedily: the largest first, each to the least loaded thread."""
    found: list[list[Matrix]] = [[] for _ in range(shares)]
    loads = [0] * shares
    for matrix in sorted(matrices, key=lambda m: -m.operations):
        least = loads.index(min(loads))
        found[least].append(matrix)
        loads[least] += matrix.operations
    return found


def scratch_of_matrices(arena: Regions, tiles: bool) -> int:
    """Return the float32 that a thread needs beside the parameters and their state."""
    return max((_places(m, tiles)[-1] for m in matrices_of(arena)), default=0) if by_kernels(arena) else 0


def _places(matrix: Matrix, tiles: bool) -> list[int]:
    """Return where, from the scratch on, X, the next X, A, A A and the scratch of products begin; and the end."""
    m, n = matrix.rows, matrix.columns
    short = min(m, n)
    sizes = [
        m * n,
        m * n,
        short * short,
        short * short,
        max(TILES["tiled_gemm"].scratch(*p) for p in _shapes(m, n)) if tiles else 0,
    ]
    return list(accumulate(map(padded, sizes), initial=0))


def _shapes(m: int, n: int) -> list[Shape]:
    """Return the shapes of the products: of A, of A A, of the next X."""
    short, tall = min(m, n), m > n
    return [
        (short, short, max(m, n), tall, not tall),
        (short, short, short, False, False),
        (m, n, short, False, False),
    ]


def _muon(arena: Regions, matrix: Matrix, shares: int, scratch: int, tiles: bool) -> list[Call]:
    """Return the calls by which Muon updates one matrix."""
    m, n, start = matrix.rows, matrix.columns, matrix.start
    x, following, gram, squared, products, _ = (scratch + place for place in _places(matrix, tiles))
    of_gram, of_square, of_x = _shapes(m, n)

    def product(a: int, b: int, c: int, shape: Shape) -> Call:
        rows, columns, inner, _, _ = shape
        operands = product_operands(a, b, c, shape)
        if tiles:
            operands |= {"start": 0, "bias": 0, "scratch": products}
        touched = 4 * (rows * inner + inner * columns + rows * columns)
        return Call(
            "tiled_gemm" if tiles else "gemm", None, 2 * rows * columns * inner, operands, touched=touched,
            label="orthogonalise", place=matrix.name,
        )  # fmt: skip

    where: dict[str, Operand] = {
        "x": x, "rows": m, "columns": n, "stride": matrix.stride, "settings": _settings(arena, matrix.group),
        "slot": CONTROLS + 1, "shares": shares,
    }  # fmt: skip
    momentum = matrix.group.state["m"] + start - matrix.group.first
    operands: dict[str, Operand] = {"gradient": arena.gradients + start, "m": momentum, **where}
    calls = [Call("muon_momentum", None, 9 * m * n, operands, touched=16 * m * n, place=matrix.name)]
    short = min(m, n)
    for _ in range(STEPS):
        mixed: dict[str, Operand] = {"gram": gram, "squared": squared, "n": short}
        calls += [
            product(x, x, gram, of_gram),
            product(gram, gram, squared, of_square),
            Call("newton_schulz", None, 3 * short * short, mixed, touched=12 * short * short, place=matrix.name),
            product(*((x, squared) if m > n else (squared, x)), following, of_x),
        ]
        x, following = following, x
    calls.append(
        Call("muon", None, 5 * m * n, {**where, "theta": start, "x": x}, touched=12 * m * n, place=matrix.name)
    )
    return calls + _averages(arena, start, m, n, matrix.stride, shares)
