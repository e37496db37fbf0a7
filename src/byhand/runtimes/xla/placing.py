"""A device's shard of each parameter, and the bytes it sends in a step: arithmetic, without JAX."""

from __future__ import annotations

import math
from collections import defaultdict

from byhand.config import ModelConfig
from byhand.layers.parameter import Parameter
from byhand.model import BLOCKS, declared
from byhand.runtimes.protocol import Shape
from byhand.runtimes.xla.mesh import SHARDED, Mesh

Spec = tuple[str | None, ...]  # the mesh's axis for each axis of an array


def held_shape(parameter: Parameter) -> tuple[int, ...]:
    """Return the shape in which devices hold an array: packed parts get a separate axis."""
    *outer, last = parameter.shape
    return parameter.shape if parameter.packed == 1 else (*outer, parameter.packed, last // parameter.packed)


def spec_of(parameter: Parameter, mesh: Mesh) -> Spec:
    """Return the mesh's axis for each axis of a held array; None if it does not divide the length."""
    axes = parameter.axes or ("",) * len(parameter.shape)
    lengths = (*parameter.shape[:-1], parameter.shape[-1] // parameter.packed)
    found = [
        SHARDED[axis] if axis in SHARDED and length % mesh.axes[SHARDED[axis]] == 0 else None
        for axis, length in zip(axes, lengths, strict=True)
    ]
    return tuple(found) if parameter.packed == 1 else (*found[:-1], None, found[-1])


def part_shape(parameter: Parameter, mesh: Mesh) -> tuple[int, ...]:
    """Return the shape of one device's shard."""
    places = zip(held_shape(parameter), spec_of(parameter, mesh), strict=True)
    return tuple(n // mesh.axes[axis] if axis else n for n, axis in places)


def sent(kind: str, size: float, n: int) -> float:
    """Return the bytes each of n devices sends in a ring collective with a result of `size` bytes."""
    share = (n - 1) / n
    return {"all-reduce": 2 * share, "reduce-scatter": n - 1, "collective-permute": 1}.get(kind, share) * size


def least_sent(config: ModelConfig, mesh: Mesh, shape: Shape) -> defaultdict[tuple[str, str], float]:
    """Return the bytes each device sends in a float32 step of one micro-batch (B, T), by collective and axes.

    Assumes no `sequence` axis. Ignores scalar all-reduces per position or step (norms, the loss). XLA may send less:
    it does not gather biases that the backward pass does not read.
    """
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    stream = 4 * shape[0] // mesh.rows * shape[1] * config.d_model
    for name, parameter in declared(config).items():
        spec, part = spec_of(parameter, mesh), 4 * math.prod(part_shape(parameter, mesh))
        if "fsdp" in spec:
            uses = 2 if name.startswith(BLOCKS) else 1  # blocks: forward and backward
            found["all-gather", "fsdp"] += uses * sent("all-gather", part * mesh.fsdp, mesh.fsdp)
            found["reduce-scatter", "fsdp"] += sent("reduce-scatter", part, mesh.fsdp)
            found["all-reduce", "data"] += sent("all-reduce", part, mesh.data)
        else:
            found["all-reduce", "data,fsdp"] += sent("all-reduce", part, mesh.rows)
        if "tensor" in spec and len(parameter.shape) > 1:
            uses = 2 if name == "wte" and config.tied_embeddings else 1  # sums of the stream: forward or backward
            found["all-reduce", "tensor"] += uses * sent("all-reduce", stream, mesh.tensor)
    return found
