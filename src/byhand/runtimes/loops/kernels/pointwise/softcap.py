"""Kernels of `softcap`: alone, or in decoding after `linear`. In training the loss caps its logits itself."""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.kernels.products import linear, row_product
from byhand.runtimes.loops.kernels.products.row_product import columns_of
from byhand.runtimes.loops.kernels.vector.arithmetic import tanh
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import PART, PARTS, Buffer
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import vector

F = np.float32


@kernel
def softcap(memory, x, y, cap, rows, width, part, parts):
    """y = cap tanh(x / cap), this thread's columns; y may be x."""
    low, high = columns_of(part, parts, width)
    most, inverse = memory[cap], F(1.0) / memory[cap]
    for b in range(rows):
        a, o = vector(memory, x + b * width + low, high - low), vector(memory, y + b * width + low, high - low)
        for c in range(high - low):
            o[c] = most * tanh(a[c] * inverse)


@kernel
def softcap_back(memory, d, x, cap, n):
    """d *= 1 - tanh(x / cap)^2."""
    a, b, inverse = vector(memory, d, n), vector(memory, x, n), F(1.0) / memory[cap]
    for i in range(n):
        t = tanh(b[i] * inverse)
        a[i] *= F(1.0) - t * t


def forward(builder: Builder, group: Group) -> None:
    """One pass, out of place."""
    (node,) = group.nodes
    _emit(builder, group, builder.value(node.inputs[0]))


def backward(builder: Builder, group: Group) -> None:
    """The slope is computed anew: the loss may have overwritten the result."""
    (node,) = group.nodes
    x, d = node.inputs[0], builder.cotangent(node)
    builder.emit("softcap_back", node, d=d, x=builder.value(x), cap=builder.constant(node.static["cap"]), n=d.size)
    builder.join(x, d, node)


def decode(builder: Builder, group: Group) -> None:
    """Alone."""
    forward(builder, group)
    builder.meet()


def decode_after_product(builder: Builder, group: Group) -> None:
    """Each thread caps the columns that it has just made, so they need not meet between."""
    row_product.emit_product(builder, group)
    _emit(builder, group, builder.result(group.nodes[-1]))
    builder.meet()


def _emit(builder: Builder, group: Group, x: Buffer) -> None:
    node = group.nodes[-1]
    y = builder.result(node)
    builder.emit(
        "softcap", node, x=x, y=y, cap=builder.constant(node.static["cap"]), rows=y.rows, width=y.width, part=PART,
        parts=PARTS,
    )  # fmt: skip


register(Rule(
    name="softcap", covers=("softcap",), kernel="softcap", stages=("train", "fill"), forward=forward,
    backward=backward,
))  # fmt: skip
register(Rule(
    name="softcap", covers=("softcap",), kernel="softcap", stages=("decode",), forward=decode,
))  # fmt: skip
register(Rule(
    name="linear + softcap", covers=(("transpose", ""), "linear", "softcap"), kernel="softcap", stages=("decode",),
    match=linear.match_before, forward=decode_after_product,
    reason="a thread caps the logits that it has just made, while they are in the first cache",
))  # fmt: skip
