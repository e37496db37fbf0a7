"""Update: the calls that end a training step.

Each thread sums and measures a range of all gradients. Then it applies AdamW to its part of that, and Muon to whole
matrices of its own: so the products of a matrix do not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

from byhand.engine.equation import registry
from byhand.equations.muon import STEPS
from byhand.equations.orthogonalise import orthogonalise
from byhand.runtimes.loops.kernels.products.tiled_gemm import room_of
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.program.calls import Call, Operand, meet
from byhand.runtimes.loops.program.controls import (
    CONTROLS,
    MATRIX_DECAY,
    RATE,
    VECTOR_DECAY,
    loss_slot,
    rate_slots,
)
from byhand.runtimes.loops.program.regions import ALIGN, Regions, padded


def update_calls(arena: Regions, number: int, shares: int, scratch: int = 0, tiles: bool = False) -> list[Call]:
    """Return the calls of one thread.

    scratch  where memory begins that only this thread uses, as much as `scratch_of_muon` says
    tiles    register tiles multiply, not BLAS
    """
    size = math.ceil(arena.size / shares / ALIGN) * ALIGN
    first, last = min(number * size, arena.size), min((number + 1) * size, arena.size)
    summed: dict[str, Operand] = {
        "gradient": arena.gradients + first, "stride": arena.size, "shares": shares, "n": last - first,
        "slot": loss_slot(number) + 1,
    }  # fmt: skip
    calls = [meet(shares), Call("sum_shares", None, (shares + 1) * (last - first), summed), meet(shares)]
    by_matrix = shared_out(matrices_of(arena), shares)
    for matrix in by_matrix[number] if by_matrix else ():
        calls += _muon(arena, matrix, shares, scratch, tiles)
    return calls + _adamw(arena, first, last, shares)


def _adamw(arena: Regions, first: int, last: int, shares: int) -> list[Call]:
    """Return the calls that apply AdamW to a thread's range of the parameters, and average it."""
    equation = registry[KERNELS["adamw"].computes]
    calls = []
    for part in arena.ranges:
        start, stop = max(first, part.first), min(last, part.last)
        if start >= stop:
            continue
        every: dict[str, Operand] = {"theta": start, "n": stop - start, "slot": CONTROLS + 1, "shares": shares}
        operands: dict[str, Operand] = every | {
            "gradient": arena.gradients + start, "m": arena.first_moments + start, "v": arena.second_moments + start,
            "rate": _rate(arena, part.scale), "decay": MATRIX_DECAY if part.is_matrix else VECTOR_DECAY,
        }  # fmt: skip
        operations = equation.flops((stop - start,))[0] if equation.flops else 0
        calls.append(Call("adamw", None, operations, operands))
        if arena.averages:
            calls.append(_average(arena, start, 1, stop - start, 0, shares))
    return calls


def _average(arena: Regions, start: int, rows: int, width: int, stride: int, shares: int) -> Call:
    operands: dict[str, Operand] = {
        "theta": start, "average": arena.averages + start, "rows": rows, "width": width, "stride": stride,
        "slot": CONTROLS + 1, "shares": shares,
    }  # fmt: skip
    return Call("average", None, 3 * rows * width, operands, touched=12 * rows * width)


def _rate(arena: Regions, scale: float) -> int:
    return rate_slots(arena.scales, arena.shares).get(scale, RATE)


@dataclass(frozen=True)
class Matrix:
    """A matrix that Muon updates: its parameter, where it begins in the region of the parameters, and its shape.

    stride  from one row to the next, more than the columns where several matrices are packed side by side
    """

    name: str
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
    """Return the matrices that Muon updates."""
    found = []
    for name, parts in arena.parts.items():
        *outer, stride = arena.shapes[name]
        columns = stride // parts
        starts = (arena.place[name] + part * columns for part in range(parts))
        found += [Matrix(name, start, math.prod(outer), columns, stride) for start in starts]
    return found


def shared_out(matrices: list[Matrix], shares: int) -> list[list[Matrix]]:
    """Return each thread's matrices: the largest first, each to the thread that has the least to do."""
    found: list[list[Matrix]] = [[] for _ in range(shares)]
    loads = [0] * shares
    for matrix in sorted(matrices, key=lambda m: -m.operations):
        least = loads.index(min(loads))
        found[least].append(matrix)
        loads[least] += matrix.operations
    return found


def scratch_of_muon(arena: Regions, tiles: bool) -> int:
    """Return the float32 that a thread needs beside the parameters and their state."""
    return max((_places(m, tiles)[-1] for m in matrices_of(arena)), default=0)


def _places(matrix: Matrix, tiles: bool) -> list[int]:
    """Return where, from the scratch on, X, the next X, A, A A and the room of products begin; and the end."""
    m, n = matrix.rows, matrix.columns
    short = min(m, n)
    sizes = [m * n, m * n, short * short, short * short, max(room_of(*p) for p in _shapes(m, n)) if tiles else 0]
    return list(accumulate(map(padded, sizes), initial=0))


def _shapes(m: int, n: int) -> list[tuple[int, int, int, bool, bool]]:
    """Return (rows, columns, sums, A transposed, B transposed) of the products: of A, of A A, of the next X."""
    short, tall = min(m, n), m > n
    return [
        (short, short, max(m, n), tall, not tall),
        (short, short, short, False, False),
        (m, n, short, False, False),
    ]


def _muon(arena: Regions, matrix: Matrix, shares: int, scratch: int, tiles: bool) -> list[Call]:
    """Return the calls that update one matrix."""
    m, n, start = matrix.rows, matrix.columns, matrix.start
    x, following, gram, squared, room, _ = (scratch + place for place in _places(matrix, tiles))
    of_gram, of_square, of_x = _shapes(m, n)

    def product(a: int, b: int, c: int, shape: tuple[int, int, int, bool, bool]) -> Call:
        rows, columns, inner, ta, tb = shape
        operands: dict[str, Operand] = {
            "a": a, "b": b, "c": c, "m": rows, "n": columns, "k": inner, "lda": rows if ta else inner,
            "ldb": inner if tb else columns, "ldc": columns, "ta": int(ta), "tb": int(tb), "adds": 0,
        }  # fmt: skip
        if tiles:
            operands |= {"start": 0, "bias": 0, "room": room}
        touched = 4 * (rows * inner + inner * columns + rows * columns)
        name = "tiled_gemm" if tiles else "gemm"
        return Call(
            name,
            None,
            2 * rows * columns * inner,
            operands,
            touched=touched,
            label="orthogonalise",
            place=matrix.name,
        )

    sound: dict[str, Operand] = {"slot": CONTROLS + 1, "shares": shares}
    where: dict[str, Operand] = {"rows": m, "columns": n, "stride": matrix.stride}
    operands: dict[str, Operand] = {
        "gradient": arena.gradients + start, "m": arena.first_moments + start, "x": x, **where, **sound,
    }  # fmt: skip
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
    last: dict[str, Operand] = {
        "theta": start, "x": x, **where, **sound, "rate": _rate(arena, arena.scales.get(matrix.name, 1.0)),
        "decay": MATRIX_DECAY if matrix.name in arena.matrices else VECTOR_DECAY,
    }  # fmt: skip
    calls.append(Call("muon", None, 5 * m * n, last, touched=12 * m * n, place=matrix.name))
    if arena.averages:
        calls.append(_average(arena, start, m, n, matrix.stride, shares))
    return calls
