"""A mesh: devices as a grid whose axes each shard something:

data      rows of the batch; parameters are replicated
fsdp      rows of the batch, and the width of every parameter, which is all-gathered on use
sequence  positions of a row; attention all-gathers keys and values
tensor    heads, the MLP's hidden columns and the vocabulary
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.errors import ConfigError

if TYPE_CHECKING:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

MOST_CPU_DEVICES = 4096  # each has a thread; more take minutes to start
AXES = ("data", "fsdp", "sequence", "tensor")
BATCH = ("data", "fsdp")  # axes that shard the rows of a batch
TOKENS = (*BATCH, "sequence")  # axes that shard its tokens: gradients are all-reduced along them
SHARDED = {"width": "fsdp", "heads": "tensor", "hidden": "tensor", "vocab": "tensor"}  # by a layer's name for an axis


@dataclass(frozen=True)
class Mesh:
    """The number of devices along each axis."""

    data: int = 1
    fsdp: int = 1
    sequence: int = 1
    tensor: int = 1

    @property
    def axes(self) -> dict[str, int]:
        """The number of devices by axis."""
        return {name: getattr(self, name) for name in AXES}

    @property
    def size(self) -> int:
        """The number of devices."""
        return self.rows * self.group_size

    @property
    def rows(self) -> int:
        """The number of shards of a batch's rows."""
        return self.data * self.fsdp

    @property
    def tokens(self) -> int:
        """The number of shards of a batch's tokens."""
        return self.rows * self.sequence

    def positions(self, length: int) -> int:
        """Return the number of shards of rows of this length: 1 if the axis does not divide it."""
        return self.sequence if length % self.sequence == 0 else 1

    def copies(self, shape: tuple[int, int]) -> int:
        """Return how many devices compute each token of a batch (B, T): more than 1 if the mesh cannot shard it."""
        b, t = shape
        return (self.rows if b % self.rows else 1) * self.sequence // self.positions(t)

    def batch_spec(self, shape: tuple[int, int], positions: bool = True) -> PartitionSpec:
        """Return the sharding of a batch (B, T): by rows, and by positions if allowed."""
        from jax.sharding import PartitionSpec

        b, t = shape
        shared = positions and self.positions(t) > 1
        return PartitionSpec(BATCH if b % self.rows == 0 else None, "sequence" if shared else None)

    @property
    def group_size(self) -> int:
        """The number of devices that have the same rows."""
        return self.sequence * self.tensor

    @cached_property
    def grid(self) -> jax.sharding.Mesh:
        """The devices of this machine, or of all hosts, as a grid; ConfigError if there are too few."""
        import jax

        devices, hosts = devices_found(), jax.process_count()
        if len(devices) > self.size and hosts > 1:
            raise ConfigError(
                f"the mesh {self} has {self.size} devices, but {hosts} hosts have {len(devices)} and use all. "
                f"Leave out --mesh, or use --mesh data={len(devices)}."
            )
        if len(devices) < self.size:
            kind = devices[0].platform
            raise ConfigError(
                f"the mesh {self} has {self.size} devices, but {len(devices)} ({kind}) can be used. "
                f"Use --mesh data={len(devices)}."
            )
        return jax.sharding.Mesh(np.array(devices[: self.size]).reshape(tuple(self.axes.values())), AXES)

    def sharding(self, spec: PartitionSpec) -> NamedSharding:
        """Return the sharding of an array by a spec."""
        from jax.sharding import NamedSharding

        return NamedSharding(self.grid, spec)

    def put(self, array: Any, sharding: NamedSharding) -> jax.Array:
        """Put a host's array on the devices."""
        import jax

        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    def fetched(self, array: Any) -> np.ndarray:
        """Fetch an array to the host, gathered from all hosts; all must call this."""
        import jax
        from jax.sharding import PartitionSpec

        if not (array.is_fully_addressable or array.is_fully_replicated):
            array = jax.jit(lambda a: a, out_shardings=self.sharding(PartitionSpec()))(array)
        return np.asarray(array)

    def own_rows(self, count: int) -> slice:
        """Return the rows of a batch for this host's devices, which are neighbours in the mesh."""
        import jax

        if jax.process_count() == 1 or count % self.rows:
            return slice(0, count)
        mine = [i for i, d in enumerate(self.grid.devices.flat) if d.process_index == jax.process_index()]
        rows = count // self.rows
        return slice(min(mine) // self.group_size * rows, (max(mine) // self.group_size + 1) * rows)

    def __str__(self) -> str:
        return ",".join(f"{name}={n}" for name, n in self.axes.items() if n > 1) or "data=1"


def devices_found() -> list[Any]:
    """Return JAX's devices; ConfigError if it cannot start."""
    import jax

    try:
        return jax.devices()
    except Exception as error:  # any error of a plug-in, or an assertion of JAX
        what = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ConfigError(
            f"JAX finds no device ({what[:200]}). Unset JAX_PLATFORMS, or use --runtime numpy."
        ) from None


def mesh_of(text: str) -> Mesh:
    """Parse a mesh such as `data=2,tensor=4`; ConfigError if it is invalid."""
    sizes: dict[str, int] = {}
    for part in (p.strip() for p in text.split(",")) if text else ():
        name, _, number = part.partition("=")
        known = name in AXES and name not in sizes and number.isascii() and number.isdigit() and len(number) < 6
        if not known or not int(number):
            raise ConfigError(f"mesh is {text[:60]!r}. Write the devices along each axis, such as data=2,fsdp=4.")
        sizes[name] = int(number)
    return Mesh(**sizes)
