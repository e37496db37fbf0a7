"""Builder: collects a graph's kernel calls, on buffers that are not allocated yet.

Rules (in the kernels' files) read a group of applications and emit calls: forward in the graph's order, then backward
in reverse. The first use of a tensor writes its cotangent, the others accumulate; a parameter's lies in the gradient
region, so micro-batches and tied parameters accumulate in the same place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from byhand.engine import Node, Variable
from byhand.engine.graph.outline import Outline
from byhand.engine.graph.record import Graph, key
from byhand.errors import ConfigError
from byhand.formats.registry import FLOAT32, Format
from byhand.runtimes.loops.program.calls import ADDS, Buffer, Call, Operand, PythonStep, barrier, buffers_of
from byhand.runtimes.loops.program.products import UNROUNDED, Products


class Preparation(NamedTuple):
    """A call that packs some rows of a weight before a plan's first run, from float32 in `staging`.

    name   the parameter's
    first  index of the first row in the parameter
    """

    name: str
    first: int
    staging: Buffer
    call: Call


@dataclass
class Builder:
    """Calls and buffers so far, and the queries that rules need.

    products  how `operand` rounds operands, and the kernel that multiplies them; sums stay float32
    tiles     register tiles, not BLAS, multiply float32
    """

    graph: Graph
    parameters: Mapping[str, Variable]
    products: Products = UNROUNDED
    tiles: bool = False
    calls: list[Call] = field(default_factory=list)
    constants: dict[Any, tuple[Buffer, Any]] = field(default_factory=dict)  # with their values
    inputs: dict[str, Buffer] = field(default_factory=dict)
    cached: int = 0  # positions in a KV cache; 0: no cache
    weights: Format = FLOAT32  # of decoding, already rounded
    packed: dict[tuple[str, bool], Buffer] | None = None  # packed weights of generation, from `weight_of`
    preparations: list[Preparation] = field(default_factory=list)
    trains: bool = False  # the backward pass follows
    decodes: bool = False  # threads divide the work of a token and meet after each group
    continues: bool = False  # prefill appends to cached positions

    def __post_init__(self) -> None:
        self._leaves = {
            id(t): (Buffer(name, tuple(t.shape), "parameter"), Buffer(name, tuple(t.shape), "gradient"))
            for name, t in self.parameters.items()
        }
        self._made: dict[Any, Buffer] = {}
        self._copies: dict[tuple[int, int], Buffer] = {}
        self._cotangents: dict[Any, Buffer] = {}
        self._written: set[Buffer] = set()
        self._scratch = Buffer("scratch", (0,), "own" if self.cached else "value")

    def value(self, tensor: Variable) -> Buffer:
        """Return the buffer of a tensor: a parameter, an input, a constant, or an earlier call's result."""
        if id(tensor) in self._leaves:
            return self._leaves[id(tensor)][0]
        if tensor.node is not None:
            return self.result(tensor.node, tensor.index)
        name = self.graph.input_name(tensor)
        if name:
            return self.inputs.setdefault(name, Buffer(name, tuple(tensor.shape), "input", "int32"))
        if isinstance(tensor.data, Outline):
            name = tensor.name or "an array"
            raise ConfigError(
                f"{name} is computed beside the graph, so no plan can compute it. Use the numpy runtime."
            )
        made = Buffer(tensor.name or "constant", tuple(tensor.shape), "constant")
        return self.constants.setdefault(key(tensor), (made, tensor.data))[0]

    def is_constant(self, tensor: Variable) -> bool:
        """Return whether the tensor has the same values in every step."""
        leaf = tensor.node is None and id(tensor) not in self._leaves and not self.graph.input_name(tensor)
        return leaf and not isinstance(tensor.data, Outline)

    def result(self, node: Node, index: int = 0) -> Buffer:
        """Return the buffer of a node's result."""
        name = node.name if len(node.results) == 1 else f"{node.name}.{index}"
        return self._buffer((id(node), index), name, node.results[index][0])

    def saved(self, node: Node, what: str, shape: tuple[int, ...]) -> Buffer:
        """Return a buffer that a forward call saves for the backward call."""
        return self._buffer((id(node), what), f"{node.name}:{what}", shape)

    def scratch(self, node: Node, what: str, shape: tuple[int, ...], kind: str = "value") -> Buffer:
        """Return a buffer for one call."""
        return Buffer(f"{node.name}:{what}", shape, kind)

    def constant(self, value: float, count: int = 1) -> Buffer:
        """Return a buffer filled with `count` copies of this number."""
        made = Buffer(repr(value), (count,), "constant")
        return self.constants.setdefault((value, count), (made, value))[0]

    def _buffer(self, which: Any, name: str, shape: tuple[int, ...]) -> Buffer:
        return self._made.setdefault(which, Buffer(name, tuple(shape), "value"))

    def cotangent(self, node: Node, index: int = 0) -> Buffer:
        """Take the finished cotangent of a node's result; zeros if nothing reached it."""
        which = (id(node), index)
        if which in self._cotangents:
            return self._cotangents.pop(which)
        zeros = self.scratch(node, "d", node.results[index][0])
        self.emit("zero", node, 0, y=zeros, n=zeros.size, unless=0)
        return zeros

    def gradient(self, tensor: Variable) -> tuple[Buffer, Operand]:
        """Return where a contribution to the tensor's cotangent goes, and whether it accumulates."""
        if id(tensor) in self._leaves:
            if tensor.frozen:  # kernels that write several gradients at once need a target
                return self.fresh_gradient(tensor), 0
            _, buffer = self._leaves[id(tensor)]
            adds: Operand = 1 if buffer in self._written else ADDS
            self._written.add(buffer)
            return buffer, adds
        if key(tensor) in self._cotangents:
            return self._cotangents[key(tensor)], 1
        self._cotangents[key(tensor)] = self.fresh_gradient(tensor)
        return self._cotangents[key(tensor)], 0

    def fresh_gradient(self, tensor: Variable) -> Buffer:
        """Return a buffer for a contribution that must be written whole; `join` it afterwards."""
        return Buffer(f"d_{tensor.name}", tuple(tensor.shape), "value")

    def join(self, tensor: Variable, contribution: Buffer, node: Node) -> None:
        """Accumulate a contribution: it becomes the tensor's cotangent, or is added to it and dies."""
        if id(tensor) not in self._leaves and key(tensor) not in self._cotangents:
            self._cotangents[key(tensor)] = contribution
            return
        target, adds = self.gradient(tensor)
        if adds == ADDS:
            self.emit("zero", node, 0, y=target, n=target.size, unless=adds)
        self.emit("accumulate", node, target.size, x=contribution, y=target, n=target.size)

    def emit(
        self,
        kernel: str,
        node: Node | None,
        flops: int | None = None,
        touched: int | None = None,
        **operands: Operand,
    ) -> Call:
        """Append a call; without `flops` it gets its share of its group's operations.

        A call that writes a `copy` for products gets their format.
        """
        if "copy" in operands:
            operands["format"] = self.products.copy if operands["copy"] and self.products.copy else 0
        call = Call(
            kernel, node, flops or 0, operands, buffers_of(operands), touched=touched, apportioned=flops is None
        )
        self.calls.append(call)
        return call

    def replicate(self, *buffers: Buffer) -> None:
        """In decoding, replicate these buffers: each thread computes all of them, which is faster than a barrier."""
        if self.decodes:
            for buffer in buffers:
                buffer.kind = "own"

    def barrier(self) -> None:
        """Append a barrier, after which arrays written in parts by threads are complete."""
        self.calls.append(barrier())

    def prepare(self, name: str, first: int, kernel: str, **operands: Operand) -> None:
        """Append a preparation; the `weight` among the operands is the staging buffer."""
        staging = operands["weight"]
        assert isinstance(staging, Buffer)
        call = Call(kernel, None, 0, operands, buffers_of(operands))
        self.preparations.append(Preparation(name, first, staging, call))

    def emit_python(self, node: Node, flops: int, step: PythonStep, buffers: Iterable[Buffer]) -> None:
        """Append a step in Python that touches these buffers; `flops` are those of its matrix products."""
        self.calls.append(Call("reference", node, flops, {}, tuple(dict.fromkeys(buffers)), step, apportioned=True))

    def operand(self, node: Node, buffer: Buffer, version: int = 0) -> Buffer:
        """Return the operand of a product: the buffer, or its rounded copy, created on first use.

        If the buffer's values change, `version` distinguishes the copies.
        """
        if self.products.copy is None:
            return buffer
        if (id(buffer), version) not in self._copies:
            self.emit("rounded", node, 0, x=buffer, copy=self.copy(buffer, version), n=buffer.size)
        return self._copies[id(buffer), version]

    def copy(self, buffer: Buffer, version: int = 0) -> Buffer | int:
        """Return the buffer's rounded copy, to be written by the same call; 0 for none."""
        if self.products.copy is None:
            return 0
        kind = self.products.copy.format.name
        made = Buffer(f"{buffer.name}:{kind}", buffer.shape, "value", kind)
        return self._copies.setdefault((id(buffer), version), made)

    @property
    def begins_inside(self) -> bool:
        """Return whether products can initialise their accumulators with a bias and a stream."""
        return self.tiles or self.products.kernel != ""

    @property
    def product_kernel(self) -> str:
        """Return the kernel of products."""
        return self.products.kernel or ("tiled_gemm" if self.tiles else "gemm")

    def shared_scratch(self, size: int) -> Buffer:
        """Return a thread's scratch, shared by all its calls, of at least `size` float32."""
        self._scratch.shape = (max(size, self._scratch.size),)
        return self._scratch
