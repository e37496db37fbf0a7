"""The machine's memory, and a lower bound of a run's: a run that is too large is refused before it begins."""

from __future__ import annotations

import math
import os

from byhand.config import TrainConfig
from byhand.errors import ConfigError
from byhand.formats.registry import FORMATS
from byhand.model import declared
from byhand.runtimes.protocol import Request, Runtime, Shape
from byhand.runtimes.registry import choose
from byhand.update_rules import state_size

OF_MEMORY = 0.8  # the largest part that a run may need
MEASURED = 64  # rows of a batch whose graph is recorded: beyond, bytes grow linearly


def physical() -> int | None:
    """Return the machine's bytes of memory, or None if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def training_bytes(config: TrainConfig, working: int) -> int:
    """Return a lower bound on a run's bytes: parameters, gradients, moments, averages, and a step's working set.

    working  bytes of the working set (`Runtime.working_bytes`)
    """
    model = config.model
    item = FORMATS[config.array_dtype].size
    parameters = declared(model)
    sizes = [(math.prod(p.shape), p.trained) for p in parameters.values()]
    arrays = sum(size * (2 if trained else 1) for size, trained in sizes) + state_size(config.optim, parameters)
    tokens = config.batch_size * model.seq_len
    read = 16 * config.grad_accum * tokens  # int64 tokens and targets
    evaluated = 16 * config.eval_windows * model.seq_len
    return item * arrays + working + read + evaluated


def require_memory(config: TrainConfig, request: Request) -> None:
    """Raise ConfigError if no runtime can compute the run, or it does not fit into a part of the memory."""
    runtime, have = choose(request).runtime, physical()
    if have is None:
        return
    need = training_bytes(config, 0)
    if need <= OF_MEMORY * have:  # else nothing is recorded
        need = training_bytes(config, working_bytes(runtime, request, (config.batch_size, config.model.seq_len)))
    if need > OF_MEMORY * have:
        raise ConfigError(
            f"this run needs at least {need / 1e9:,.1f} GB, but the machine has {have / 1e9:,.1f} GB of memory. "
            f"Start a run with a smaller model, --batch-size, --grad-accum or --eval-windows."
        )


def working_bytes(runtime: Runtime, request: Request, shape: Shape) -> int:
    """Return the bytes of a step's working set; a large batch is extrapolated from two smaller ones."""
    rows, steps = shape
    if rows <= MEASURED:
        return runtime.working_bytes(request, shape)
    half, whole = (runtime.working_bytes(request, (n, steps)) for n in (MEASURED // 2, MEASURED))
    return whole + (rows - MEASURED) * (whole - half) // (MEASURED - MEASURED // 2)
