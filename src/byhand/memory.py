"""The memory that a run, an evaluation or a generation needs, known before anything large is allocated.

Stored arrays are counted by arithmetic; the runtime reports its working set. If a run does not fit, the error says
what would.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from byhand.config import TrainConfig
from byhand.errors import ConfigError
from byhand.flops import step_flops
from byhand.formats.names import array_of
from byhand.formats.registry import FORMATS
from byhand.model import declared
from byhand.model_config import ModelConfig
from byhand.runtimes.protocol import Request, Runtime, Shape
from byhand.runtimes.registry import choose
from byhand.update_rules import state_size

OF_MEMORY = 0.9  # largest share that a run may need
MINUTE = 1e13  # operations of an update that takes a minute or more on most laptops
MEASURED = 64  # largest batch whose graph is recorded: beyond, bytes grow linearly
SHORTEST = 64  # positions: the shortest context that a message offers
WINDOWS = 200  # validation windows that a message offers
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of containers


def physical() -> int | None:
    """Return the bytes of memory of the machine or its container; None if unknown."""
    found = list[int]()
    with suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in LIMITS:
        with suppress(OSError, ValueError):  # "max" means no limit
            found.append(int(path.read_text()))
    if sys.platform == "win32":
        found.append(_windows()[1])
    return min((size for size in found if size > 0), default=None)


def room(runtime: Runtime) -> int | None:
    """Return the bytes that a run may need: a share of the memory, at most what other programs leave free."""
    if (of_devices := runtime.room()) is not None:
        return of_devices
    have = physical()
    if have is None:
        return None
    most, free = int(OF_MEMORY * have), None
    if sys.platform == "win32":
        free = _windows()[2]
    else:
        with suppress(OSError, ValueError, StopIteration):
            lines = Path("/proc/meminfo").read_text().splitlines()
            free = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return most if free is None else min(most, free)


def _windows() -> tuple[int, ...]:
    """Return MEMORYSTATUSEX: dwLength and dwMemoryLoad as one number, then ullTotalPhys, ullAvailPhys and more."""
    status = (ctypes.c_uint64 * 8)(64)
    getattr(ctypes, "windll").kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # noqa: B009  (Windows only)
    return tuple(status)


def training_bytes(config: TrainConfig, working: int) -> int:
    """Return the bytes of a run's arrays: parameters, gradients, state, averages, batches, working set.

    working  bytes of the working set (`Runtime.working_bytes`)
    """
    model = config.model
    item = FORMATS[config.array_dtype].size
    everything, trained = parameter_counts(model)
    arrays = everything + trained + state_size(config.optim, declared(model))
    tokens = config.batch_size * config.length
    read = 16 * config.grad_accum * tokens  # int64 tokens and targets
    evaluated = 16 * config.eval_windows * config.length
    return item * arrays + working + read + evaluated


def run_bytes(config: TrainConfig, request: Request) -> int:
    """Return the peak of a whole process that trains: arrays, working set, and libraries."""
    runtime, model = choose(request).runtime, config.model
    working = working_bytes(runtime, request, (config.batch_size, config.length))
    item, (_, trained) = FORMATS[config.array_dtype].size, parameter_counts(model)
    new = item * (trained + state_size(config.optim, declared(model))) if runtime.replaces else 0
    if runtime.replaces == "after":
        working, new = max(working, new + item * trained), 0  # plus the clipped gradients
    return training_bytes(config, working) + new + runtime.loaded


def fitting(config: TrainConfig, request: Request) -> TrainConfig | None:
    """Return the run with the largest micro-batch that fits, and the same rows per update; None if none fits."""
    have, whole = room(choose(request).runtime), config.batch_size * config.grad_accum
    if have is None:
        return config
    small = [n for n in range(1, math.isqrt(whole) + 1) if whole % n == 0]
    sizes = sorted({*small, *(whole // n for n in small)})

    def of(rows: int) -> TrainConfig:
        return replace(config, batch_size=rows, grad_accum=whole // rows)

    fits = bisect_right(sizes, have, key=lambda rows: _least(of(rows), request, have))
    return of(sizes[fits - 1]) if fits else None


def _least(config: TrainConfig, request: Request, have: int) -> int:
    """Return the bytes of a run, or of its arrays alone if those do not fit; then no graph is recorded."""
    need = training_bytes(config, 0) + choose(request).runtime.loaded
    return need if need > have else run_bytes(config, request)


def require_memory(config: TrainConfig, request: Request) -> None:
    """Raise ConfigError if no runtime can compute the run, or it does not fit; the message says what would."""
    if (have := room(choose(request).runtime)) is not None and (need := _least(config, request, have)) > have:
        offer = "a smaller model"
        for flags, operations in _that_fit(config, request):
            offer = flags
            if operations < MINUTE:
                break
        raise ConfigError(
            f"this run needs {need / 1e9:,.3g} GB, but {have / 1e9:,.3g} GB of memory are free for it here. "
            f"What fits: {offer}."
        )


def _that_fit(config: TrainConfig, request: Request) -> Iterator[tuple[str, int]]:
    """Yield flags with which the run would fit, each with the operations of an update.

    They set a smaller micro-batch, a shorter context or window, and fewer validation windows.
    """
    context = "seq-len" if config.window is None else "window"
    fewer = [WINDOWS] if config.eval_windows > WINDOWS else []
    for windows in (config.eval_windows, *fewer):
        length = config.length
        while length >= SHORTEST:
            shorter = config.model if config.window else replace(config.model, seq_len=length)
            window = length if config.window else None
            small = replace(config, model=shorter, window=window, eval_windows=windows)
            if found := fitting(small, replace(request, model=shorter)):
                flags = {context: length, "batch-size": found.batch_size, "grad-accum": found.grad_accum}
                flags |= {"eval-windows": windows}
                same = {context: config.length, "eval-windows": config.eval_windows}
                said = " ".join(f"--{name} {n}" for name, n in flags.items() if n != same.get(name))
                yield said, step_flops(shorter, config.batch_size * config.grad_accum, length)
            length //= 2


def needed(request: Request, shape: Shape | None = None) -> int:
    """Return the peak memory of a process that generates, or evaluates on tokens of this shape."""
    runtime, item = choose(request).runtime, FORMATS[array_of(request.dtype)].size
    weights = FORMATS[request.weights].bits / 8 if runtime.packs else item
    more = working_bytes(runtime, request, shape) if shape else item * cached(request.model, request.streams)
    return int(weights * parameter_counts(request.model)[0]) + more + runtime.loaded


def require_room(what: str, request: Request, instead: str, shape: Shape | None = None) -> None:
    """Raise ConfigError if evaluation on tokens of this shape, or generation, does not fit in memory.

    instead  advice for the message
    """
    if (have := room(choose(request).runtime)) is not None and (need := needed(request, shape)) > have:
        raise ConfigError(
            f"{what} needs at least {need / 1e9:,.3g} GB, but {have / 1e9:,.3g} GB of memory are free for it here. "
            f"{instead}"
        )


def cached(model: ModelConfig, streams: int) -> int:
    """Return the number of elements in the keys and values of `streams` streams."""
    return 2 * streams * model.n_layers * model.kv_heads * model.head_width * model.cached


def parameter_counts(model: ModelConfig) -> tuple[int, int]:
    """Return the number of parameters, and of trained ones."""
    sizes = [(math.prod(p.shape), p.trained) for p in declared(model).values()]
    return sum(size for size, _ in sizes), sum(size for size, trained in sizes if trained)


@lru_cache(256)
def working_bytes(runtime: Runtime, request: Request, shape: Shape) -> int:
    """Return the bytes of a step's working set; a large batch is extrapolated from two smaller ones."""
    rows, steps = shape
    if rows <= MEASURED:
        return runtime.working_bytes(request, shape)
    half, whole = (runtime.working_bytes(request, (n, steps)) for n in (MEASURED // 2, MEASURED))
    return whole + (rows - MEASURED) * (whole - half) // (MEASURED - MEASURED // 2)
