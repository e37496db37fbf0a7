"""Replay: load a plan's kernels, and run ranges of its table in one call (see `encode/walk.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ctypes import addressof, c_int64

import numpy as np

from byhand.runtimes.loops.encode.tables import IN_PYTHON, NAMES, OPCODES, WIDTH
from byhand.runtimes.loops.encode.walk import OUTCOME
from byhand.runtimes.loops.machine import building
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.machine.machine_code import callable_at

_addresses = np.zeros(len(NAMES), np.int64)  # of loaded kernels
_ADDRESSES = _addresses.ctypes.data
_ROWS = c_int64 * 6
_walk: Callable[[int, int], int] | None = None  # the entry point of `walk`


def ready(names: Iterable[str]) -> None:
    """Load kernels; those without machine code for this processor are compiled first, which takes a while."""
    global _walk
    lacking = [name for name in dict.fromkeys(names) if not _addresses[OPCODES[name]]]
    if lacking or _walk is None:
        found = building.addresses_of([*lacking, "walk"])
        _walk = callable_at(found.pop("walk"))
        for name, address in found.items():
            _addresses[OPCODES[name]] = address


def ready_for(tables: Iterable[np.ndarray]) -> None:
    """Load the kernels that these tables call."""
    codes = {int(code) for table in tables for code in np.unique(table[:, 0])}
    ready(NAMES[code] for code in sorted(codes) if code != IN_PYTHON)


class Resources:
    """The arrays that kernels work on, and their addresses; caching these saves ten microseconds per call."""

    def __init__(
        self, memory: np.ndarray, words: np.ndarray, controls: np.ndarray, signals: np.ndarray, blas: np.ndarray
    ) -> None:
        self.memory = memory
        self.arrays = (memory, words, controls, signals, blas)  # kept alive
        self._numbers = np.array([number for a in self.arrays for number in (a.ctypes.data, a.size)], np.int64)
        self.address = self._numbers.ctypes.data


def replay(table: np.ndarray, first: int, last: int, times: int, resources: Resources) -> None:
    """Run rows first .. last of the table `times` times, without the GIL."""
    assert _walk, "no kernel is loaded: `ready` loads them"
    rows = _ROWS(table.ctypes.data, first, last, times, _ADDRESSES, 0)
    _walk(addressof(rows), resources.address)
    if outcome := rows[OUTCOME]:
        kernel = NAMES[table[abs(outcome) - 1][0]]
        raise RuntimeError(f"kernel {kernel} {'was not loaded' if outcome > 0 else 'failed'}")


def run_kernel(
    kernel: str, memory: np.ndarray, blas: Sequence[int] = (0, 0, 0), controls: np.ndarray | None = None, /,
    **operands: int,
) -> None:  # fmt: skip
    """Run one kernel by itself, for measurements and tests, with scratch signals, and controls if none are given."""
    ready([kernel])
    table = np.zeros((1, WIDTH), np.int64)
    fields = KERNELS[kernel].operands
    table[0, : 1 + len(fields)] = OPCODES[kernel], *(operands.pop(field) for field in fields)
    assert not operands, f"{kernel} has no {', '.join(operands)}"
    scratch = np.zeros(32) if controls is None else controls, np.zeros(32, np.int64), np.array(blas, np.int64)
    replay(table, 0, 1, 1, Resources(memory, memory.view(np.int32), *scratch))
