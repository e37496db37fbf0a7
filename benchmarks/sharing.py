"""Bytes held, bytes sent and operations of each device of a mesh in a training step, from the compiled program.

The step is compiled for as many CPU devices as the mesh has; they need not exist. XLA counts a loop's body once, so
steps with zero, two and three blocks tell a block's cost inside and outside the loops.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from byhand.config import OptimConfig
from byhand.errors import ConfigError
from byhand.formats.registry import FORMATS
from byhand.model import Layers, declared
from byhand.optim import Optimizer, State
from byhand.runtimes.protocol import Request, Shape
from byhand.runtimes.xla import compiling
from byhand.runtimes.xla.layout import Layout
from byhand.runtimes.xla.mesh import Mesh, mesh_of
from byhand.runtimes.xla.placing import sent
from byhand.runtimes.xla.step import rules_of, traced_step

KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")
_CALL = re.compile(rf"= (\(?[^=]*?\)?) ({'|'.join(KINDS)})(?:-start)?\((.*)$", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/")
_ARRAY = re.compile(r"\b(pred|[a-z]+?)(\d*)\[([\d,]*)\]")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_AXES = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))? \{([^}]*)\}")
_LISTED = re.compile(r"replica_groups=\{(\{[\d,{}]*\})\}")
_PAIRS = re.compile(r"source_target_pairs=\{(\{[\d,{}]*\})\}")

Moved = Mapping[tuple[str, bool], float]  # (kind, between hosts) -> bytes a device sends in a step, on average


@dataclass(frozen=True)
class DeviceShare:
    """One device's share of a step.

    held       bytes of parameters and moments
    workspace  further bytes of a step, with attention's full scores
    flops      operations
    moved      bytes sent, by kind of collective and whether they leave the host
    looped     the part of `moved` sent in the loops over the blocks
    """

    held: int
    workspace: int
    flops: float
    moved: Moved
    looped: Moved


def device_share(request: Request, shape: Shape, per_host: int, optim: OptimConfig | None = None) -> DeviceShare:
    """Return the share of each device of the request's mesh in a step of one micro-batch (B, T).

    per_host  devices of a host, which are neighbours in the mesh
    optim     settings of the optimizer; AdamW for all if not given

    Uses no accelerator: JAX must not have started in this process, except with as many CPU devices.
    """
    mesh = mesh_of(request.mesh)
    jax.config.update("jax_platforms", "cpu")
    compiling.prepare(mesh.size)
    if shape[0] % mesh.rows:
        raise ConfigError(f"{mesh.rows} devices cannot share {shape[0]} rows. Use a multiple of {mesh.rows}.")
    if shape[1] % mesh.sequence:
        n = mesh.sequence
        raise ConfigError(f"{n} devices cannot share {shape[1]} positions. Use a multiple of {n}.")
    optim = optim or OptimConfig()
    logits = shape[0] * shape[1] * request.model.vocab_size
    chunk = min(logits, compiling.settings(replace(request, dtype="float32"), mesh, "gpu").logits)
    whole = _compiled(request, optim, shape, mesh, request.model.n_layers, chunk)
    none, two, three = (_counted(_compiled(request, optim, shape, mesh, n, logits), per_host) for n in (0, 2, 3))
    each, looped = {}, {}
    for key in three:
        outside_loops = three[key] - two[key]  # one block's: sums and updates of its parameters
        in_loops = two[key] - none[key] - 2 * outside_loops
        looped[key] = request.model.n_layers * in_loops
        each[key] = none[key] + looped[key] + request.model.n_layers * outside_loops
    memory = whole.memory_analysis()
    held = memory.alias_size_in_bytes
    workspace = memory.argument_size_in_bytes + memory.temp_size_in_bytes - held
    del looped["flops"]
    return DeviceShare(held, workspace, each.pop("flops"), each, looped)


@lru_cache(4)  # a model of two or three blocks and few logits is itself one of the counted steps
def _compiled(request: Request, optim: OptimConfig, shape: Shape, mesh: Mesh, blocks: int, logits: int) -> Any:
    """Return the compiled step of a model with `blocks` blocks that computes `logits` logits at once."""
    config = replace(request.model, n_layers=max(1, blocks))
    layers = Layers.of(config)
    layout = Layout(replace(layers, blocks=layers.blocks[:blocks]), config, mesh)
    settings = compiling.settings(replace(request, dtype="float32"), mesh, "gpu")
    settings = replace(settings, products=FORMATS[request.dtype], logits=logits)
    whole = mesh.sharding(PartitionSpec())
    tokens = jax.ShapeDtypeStruct(shape, jnp.int32, sharding=mesh.sharding(mesh.batch_spec(shape)))
    numbers = tuple(jax.ShapeDtypeStruct((), kind, sharding=whole) for kind in (jnp.float32, jnp.float32, jnp.int32))
    optimizer, arrays = Optimizer(optim, declared(config)), layout.described()
    step = traced_step(layout, optimizer, settings, [shape])
    rules = rules_of(layout, optimizer)
    moments = {
        kind: {n: a for n, a in arrays.items() if n in rules and kind in rules[n].state} for kind in optimizer.moments
    }
    held = State(arrays, moments, arrays if optim.ema else {})
    places = jax.tree.map(lambda a: a.sharding, held)
    jitted = jax.jit(step, donate_argnums=0, out_shardings=(places, whole, whole))
    return jitted.lower(held, [(tokens, tokens)], numbers).compile()


def _counted(compiled: Any, per_host: int) -> defaultdict[Any, float]:
    """Return the operations of a compiled program, and the bytes each device sends.

    Assumes rings in device order. All network cards carry equal shares of the traffic between hosts, since NCCL makes
    a ring for each card.
    """
    found: defaultdict[Any, float] = defaultdict(float, flops=compiled.cost_analysis()["flops"])
    for arrays, kind, rest in _CALL.findall(_COMMENT.sub("", compiled.as_text())):
        groups = _groups(rest)
        n = groups.shape[1]
        if n == 1:
            continue
        hosts = groups // per_host
        leaving = float((hosts != np.roll(hosts, -1, axis=1)).mean())
        for crosses, part in ((False, 1 - leaving), (True, leaving)):
            if part:
                found[kind, crosses] += part * sent(kind, _bytes(arrays), n)
    return found


def _bytes(arrays: str) -> int:
    """Return the bytes of arrays in XLA's notation: `f32[2,3]{1,0}` or a tuple of such."""
    return sum(
        max(1, int(bits or 8) // 8) * int(np.prod([int(n) for n in shape.split(",") if n], dtype=np.int64))
        for _, bits, shape in _ARRAY.findall(arrays)
    )


def _groups(rest: str) -> np.ndarray:
    """Parse the groups of devices (groups, devices) after a call in XLA's text."""
    if found := _IOTA.search(rest):
        n, size, *ids = found.groups()
        return _ids(*ids).reshape(int(n), int(size))
    if found := _AXES.search(rest):
        axes, shape, order, chosen = found.groups()
        names, lengths = zip(*(axis.split("=") for axis in axes.split(",")), strict=True)
        together = [names.index(name) for name in chosen.split(",")]
        apart = [i for i in range(len(names)) if i not in together]
        ids = _ids(shape, order) if shape else np.arange(np.prod([int(n) for n in lengths]))
        grid = ids.reshape([int(n) for n in lengths]).transpose(apart + together)
        return grid.reshape(-1, int(np.prod([int(lengths[i]) for i in together])))
    found = _LISTED.search(rest) or _PAIRS.search(rest)
    if not found:
        raise ConfigError("XLA writes its exchanges in a way that is not known here. Use another version of JAX.")
    return np.array([[int(x) for x in group.split(",")] for group in found[1].strip("{}").split("},{")])


def _ids(shape: str, order: str | None) -> np.ndarray:
    """Parse XLA's notation for devices: [4,2]T(1,0) is 0 to 7 in rows of two, transposed."""
    lengths = [int(x) for x in shape.split(",")]
    ids = np.arange(int(np.prod(lengths))).reshape(lengths)
    return (ids.transpose([int(x) for x in order.split(",")]) if order else ids).reshape(-1)
