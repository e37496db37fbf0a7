"""The layout of a model's parameters on the devices: equal blocks stacked, each array sharded by its axes.

A stack holds the arrays of consecutive equal blocks under the first one's names, with a leading axis of blocks: one
trace serves all. Packed parts get a separate axis, so that each part is sharded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from byhand.config import ModelConfig
from byhand.files.parts import placed_name
from byhand.layers.block import Block
from byhand.layers.parameter import Arrays, Parameter, Tree, flat, map_tree
from byhand.model import BLOCKS, Layers
from byhand.runtimes.xla.mesh import TOKENS, Mesh
from byhand.runtimes.xla.owning import Ends, divided, ends_of, holders
from byhand.runtimes.xla.placing import held_shape, spec_of


@dataclass(frozen=True)
class Stack:
    """Consecutive equal blocks: index of the first, count, the block, its parameters."""

    first: int
    count: int
    block: Block
    declared: Tree

    def name(self, i: int, local: str) -> str:
        """Return the name of a parameter of block i."""
        return f"{BLOCKS}.{i}.{local}"

    def tree(self, arrays: Arrays) -> Tree:
        """Return the arrays of one block as the tree that its `apply` takes."""
        return map_tree(self.declared, lambda local: arrays[self.name(self.first, local)])


class Layout:
    """The arrays of a model on a mesh.

    declared  declarations by array; a stack has its first block's
    """

    def __init__(self, layers: Layers, config: ModelConfig, mesh: Mesh) -> None:
        self.config = config
        self.mesh = mesh
        self.layers = layers
        self.stacks: list[Stack] = []
        first, declared = 0, self.layers.parameters()
        for block, equal in groupby(self.layers.blocks):
            self.stacks.append(Stack(first, count := len(list(equal)), block, declared[BLOCKS][str(first)]))
            first += count
        outside = {name: part for name, part in declared.items() if name != BLOCKS}
        self._outside: Tree = outside
        self.declared: dict[str, Parameter] = flat(outside)
        self._stack_of: dict[str, Stack] = {}
        for stack in self.stacks:
            inside = {stack.name(stack.first, n): p for n, p in flat(stack.declared).items()}
            self.declared |= inside
            self._stack_of |= dict.fromkeys(inside, stack)

    def outside(self, arrays: Arrays) -> dict[str, Any]:
        """Return the arrays outside the blocks."""
        return {name: a for name, a in arrays.items() if name not in self._stack_of}

    def of(self, stack: Stack, arrays: Arrays) -> dict[str, Any]:
        """Return the arrays of a stack."""
        return {name: a for name, a in arrays.items() if self._stack_of.get(name) is stack}

    def tree(self, arrays: Arrays) -> Tree:
        """Return the arrays outside the blocks as the tree that `Layers.begin` and `finish` take."""
        return map_tree(self._outside, arrays.__getitem__)

    def whole(self, name: str, array: Any) -> Any:
        """All-gather an array (one block's of a stack) along `fsdp`, in the shape that its layer uses.

        Packed parts with sharded columns keep their axis: merging them would force another all-gather.
        """
        parameter = self.declared[name]
        spec = self._spec(parameter)
        if (axis := _gathered_axis(spec, self.mesh)) is not None:
            array = self._by_columns(lambda a: jax.lax.all_gather(a, "fsdp", axis=axis, tiled=True), array, spec)
        array = self._columns(array, spec)
        return array if self.mesh.tensor > 1 else array.reshape(parameter.shape)

    def held(self, name: str, gradient: Any) -> Any:
        """Reduce-scatter the gradient of a whole array along `fsdp`, into its held shape."""
        parameter = self.declared[name]
        spec = self._spec(parameter)
        gradient = self._columns(gradient.reshape(held_shape(parameter)), spec)
        if (axis := _gathered_axis(spec, self.mesh)) is not None:
            return self._by_columns(
                lambda d: jax.lax.psum_scatter(d, "fsdp", scatter_dimension=axis, tiled=True), gradient, spec
            )
        return gradient

    def summed(self, name: str, gradient: Any) -> Any:
        """All-reduce a held gradient over the devices that shard the tokens."""
        if self.mesh.tokens == 1:
            return gradient
        apart = _gathered_axis(self._spec(self.declared[name]), self.mesh) is None
        return jax.lax.psum(gradient, TOKENS if apart else ("data", "sequence"))

    def by_tokens(
        self, function: Callable[..., Any], batches: Sequence[PartitionSpec], out: Any
    ) -> Callable[..., Any]:
        """Map a function of (parameters, batches) over shards of tokens.

        batches  the sharding of each batch (`Mesh.batch_spec`)
        out      PartitionSpecs of the results
        """
        if self.mesh.tokens == 1:
            return function
        given = {name: self.rows_spec(name) for name in self.declared}, list(batches)
        return jax.shard_map(
            function, mesh=self.mesh.grid, in_specs=given, out_specs=out, axis_names=set(TOKENS), check_vma=False
        )

    def rows_spec(self, name: str) -> PartitionSpec:
        """Return an array's sharding along `fsdp` alone."""
        return _along("fsdp", self.sharding(name).spec)

    def _by_columns(self, collective: Callable[[Any], Any], array: Any, spec: PartitionSpec) -> Any:
        """Apply a collective along `fsdp` to each device's own columns; XLA would gather them first."""
        if self.mesh.tensor == 1:
            return collective(array)
        columns = _along("tensor", spec)
        return jax.shard_map(collective, in_specs=columns, out_specs=columns, axis_names={"tensor"}, check_vma=False)(
            array
        )

    def _columns(self, array: Any, spec: PartitionSpec) -> Any:
        """Constrain a gathered array to stay sharded along `tensor`."""
        if self.mesh.tensor == 1:
            return array
        spec = _along("tensor", spec)
        return jax.lax.with_sharding_constraint(array, self.mesh.sharding(spec) if self.mesh.tokens == 1 else spec)

    def sharding(self, name: str) -> NamedSharding:
        """Return an array's sharding on the mesh."""
        spec = self._spec(self.declared[name])
        return self.mesh.sharding(PartitionSpec(None, *spec) if name in self._stack_of else spec)

    def _spec(self, parameter: Parameter) -> PartitionSpec:
        """Return the mesh's axis for each axis of an array; see `spec_of`."""
        return PartitionSpec(*spec_of(parameter, self.mesh))

    def placed(self, arrays: Mapping[str, np.ndarray]) -> dict[str, jax.Array]:
        """Put a model's arrays, or the same subset of every block's, on the devices, stacked."""
        found = {}
        for name in self.declared:
            if name not in arrays:
                continue
            whole = np.stack([arrays[n] for n in self.names(name)]) if name in self._stack_of else arrays[name]
            found[name] = self.mesh.put(whole.reshape(self._held_shape(name)), self.sharding(name))
        return found

    def fetched(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Fetch the devices' arrays to the host, one for each parameter of the model."""
        found: dict[str, np.ndarray] = {}
        for name, array in arrays.items():
            stack, whole, shape = self._stack_of.get(name), self.mesh.fetched(array), self.declared[name].shape
            if stack:
                found |= {n: a.reshape(shape) for n, a in zip(self.names(name), whole, strict=True)}
            else:
                found[name] = whole.reshape(shape)
        return found

    def own(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Return the parts that this host saves, by parameter and place (see `parts.py`).

        Hosts with replicas of a shard divide it, so that all write about as much.
        """
        found: dict[str, np.ndarray] = {}
        loads: Counter[int] = Counter()
        for name, array in arrays.items():
            here = {ends_of(shard.index, array.shape): shard.data for shard in array.addressable_shards}
            for host, held, part in divided(holders(array.sharding, array.shape), loads):
                if host == jax.process_index():
                    cut = tuple(slice(b - begin, e - begin) for (b, e), (begin, _) in zip(part, held, strict=True))
                    found |= self._boxes(name, part, np.asarray(here[held] if part == held else here[held][cut]))
        return found

    def _boxes(self, name: str, ends: Ends, held: np.ndarray) -> dict[str, np.ndarray]:
        """Unstack a device's shard into parts of the model's parameters."""
        parameter, names = self.declared[name], self.names(name)
        width = parameter.shape[-1] // parameter.packed
        blocks, ends = (range(*ends[0]), ends[1:]) if name in self._stack_of else (range(1), ends)
        packed = ends[-2] if parameter.packed > 1 else (0, 1)
        found = {}
        for block, array in zip(blocks, held if len(held.shape) > len(ends) else held[None], strict=True):
            for part in range(*packed):
                outer, (begin, end) = ends[: len(parameter.shape) - 1], ends[-1]
                box = *(slice(*pair) for pair in outer), slice(part * width + begin, part * width + end)
                piece = array if parameter.packed == 1 else array[..., part - packed[0], :]
                found[placed_name(names[block], box, parameter.shape)] = piece
        return found

    def described(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Return the arrays' shapes and shardings in float32, without data."""
        return {
            name: jax.ShapeDtypeStruct(self._held_shape(name), np.float32, sharding=self.sharding(name))
            for name in self.declared
        }

    def _held_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape in which devices hold an array, with an axis of blocks if it is stacked."""
        shape, stack = held_shape(self.declared[name]), self._stack_of.get(name)
        return (stack.count, *shape) if stack else shape

    def names(self, name: str) -> list[str]:
        """Return the names of the model's parameters in an array, one for each block of a stack."""
        stack = self._stack_of.get(name)
        if stack is None:
            return [name]
        local = name.removeprefix(stack.name(stack.first, ""))
        return [stack.name(i, local) for i in range(stack.first, stack.first + stack.count)]


def _along(axis: str, spec: PartitionSpec) -> PartitionSpec:
    """Return a spec with only this axis of the mesh."""
    return PartitionSpec(*(axis if each == axis else None for each in spec))


def _gathered_axis(spec: PartitionSpec, mesh: Mesh) -> int | None:
    """Return the axis that is all-gathered before use, or None."""
    return tuple(spec).index("fsdp") if mesh.fsdp > 1 and "fsdp" in tuple(spec) else None
