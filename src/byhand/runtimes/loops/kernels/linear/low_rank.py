"""Kernels of `low_rank`: two thin products, accumulated into a frozen matrix's product."""

from __future__ import annotations

from byhand.runtimes.loops.kernels.linear import linear
from byhand.runtimes.loops.kernels.products.product import emit_product
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder


@kernel
def scaled(memory, x, y, factor, n):
    """y = factor x; y may be x."""
    a, o, f = vector(memory, x, n), vector(memory, y, n), vector(memory, factor, 1)[0]
    for i in range(n):
        o[i] = f * a[i]


def forward(builder: Builder, group: Group) -> None:
    """The frozen product with its bias and the stream, plus s h B."""
    linear.forward(builder, group)
    (node,) = group.of("low_rank")
    _, h, up = node.inputs
    y, narrow = builder.result(group.nodes[-1]), builder.value(h)
    moved, factor = builder.saved(node, "scaled", narrow.shape), builder.constant(node.static["scale"])
    builder.emit("scaled", node, x=narrow, y=moved, factor=factor, n=moved.size)
    left, right = builder.operand(node, moved), builder.operand(node, builder.value(up))
    emit_product(builder, node, left, right, y, y.rows, moved.width, adds=1)


def backward(builder: Builder, group: Group) -> None:
    """d_h = s d_y B^T and d_B = (s h)^T d_y; then the frozen layer's backward calls."""
    (node,) = group.of("low_rank")
    _, h, up = node.inputs
    d_y, d_h = builder.cotangent(group.nodes[-1]), builder.fresh_gradient(h)
    d_read = builder.operand(node, d_y, id(linear.linear_node(group)))
    emit_product(builder, node, d_read, builder.operand(node, builder.value(up)), d_h, d_y.rows, d_y.width, tb=True)
    builder.emit("scaled", node, x=d_h, y=d_h, factor=builder.constant(node.static["scale"]), n=d_h.size)
    builder.join(h, d_h, node)
    moved, (d_up, adds) = builder.saved(node, "scaled", h.shape), builder.gradient(up)
    emit_product(builder, node, builder.operand(node, moved), d_read, d_up, d_up.rows, d_y.rows, ta=True, adds=adds)
    linear.passed_back(builder, group, d_y)


for before, after in (("", ""), ("residual(stream, ", ")")):
    register(Rule(
        name=f"linear + low_rank{' + residual' * bool(before)}",
        pattern=f"{before}low_rank({linear.LINEAR}, h, b){after}", kernel="tiled_gemm", stages=("train",),
        forward=forward, backward=backward,
        reason="both products accumulate into one array; the frozen matrix gets no gradient",
    ))  # fmt: skip
