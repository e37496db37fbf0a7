"""Kernels of `linear`: a matrix product whose accumulators begin with the bias (and the residual stream).

Register tiles load both (`tiled_gemm.py`). BLAS (`gemm.py`) computes C = A B + beta C: with beta = 1 it adds the
initial C at no cost. A loop before it writes the bias, or stream plus bias, there; a loop after it would have to read
everything again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.products.product import emit_product
from byhand.runtimes.loops.kernels.products.rounding import copy_row
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer

F = np.float32
LINEAR = "linear(x, transpose({w}) | w)"  # of a transposed weight, products read the original array


@kernel(rows="rows", moves={"y": "width"})
def fill_bias(memory, y, bias, rows, width):
    """y[i,:] = bias."""
    o, b = matrix(memory, y, rows, width), vector(memory, bias, width)
    for i in range(rows):
        for c in range(width):
            o[i, c] = b[c]


@kernel(rows="rows", moves={"y": "width", "x": "width"})
def fill_residual(memory, y, x, bias, rows, width):
    """y[i,:] = x[i,:] + bias."""
    o, a, b = matrix(memory, y, rows, width), matrix(memory, x, rows, width), vector(memory, bias, width)
    for i in range(rows):
        for c in range(width):
            o[i, c] = a[i, c] + b[c]


@kernel
def column_sum(memory, d, out, copy, format, rows, width, adds):
    """out = sum over rows of d, four rows at a time; also copies them for products while they are in cache."""
    a, o = matrix(memory, d, rows, width), vector(memory, out, width)
    if not adds:
        o[:] = F(0)
    fours = rows // 4 * 4
    for i in range(0, fours, 4):
        for c in range(width):
            o[c] += (a[i, c] + a[i + 1, c]) + (a[i + 2, c] + a[i + 3, c])
        for k in range(i, i + 4):
            copy_row(memory, d, copy, format, k, k, rows, width)
    for i in range(fours, rows):
        for c in range(width):
            o[c] += a[i, c]
        copy_row(memory, d, copy, format, i, i, rows, width)


def linear_node(group: Group) -> Any:
    """Return the group's application of `linear`."""
    return group.of("linear")[0]


def weight_of(group: Group) -> tuple[Any, bool]:
    """Return the tensor that stores the weight, and whether as [out, in]."""
    if transposed := group.of("transpose"):
        return transposed[0].inputs[0], True
    return linear_node(group).inputs[1], False


def bias_of(builder: Builder, node: Any) -> Buffer | int:
    """Return the bias of an application of `linear`, or 0 if it has none."""
    return builder.value(node.inputs[2]) if len(node.inputs) > 2 else 0


def bias_or_zeros(builder: Builder, node: Any) -> Buffer:
    """Return the bias of an application of `linear`, or zeros."""
    bias = bias_of(builder, node)
    return bias if isinstance(bias, Buffer) else builder.constant(0.0, node.results[0][0][-1])


def read_by_products(builder: Builder, node: Any) -> dict[str, Any]:
    """Return the operands of a kernel that writes a node's result y, and its copy if products read one.

    If only a product reads y, through the copy, y is not `kept`: it is a single row.
    """
    y, reader = builder.result(node), builder.graph.only_reader(node)
    copy = builder.copy(y)
    kept = not copy or reader is None or reader.equation.name != "linear"
    row = y if kept else builder.scratch(node, "row", (y.width,))
    return {"y": row, "copy": copy, "rows": y.rows, "width": y.width, "kept": int(kept)}


def product(
    builder: Builder, group: Group, y: Buffer, adds: Any, first: int = 0, start: Any = 0, bias: Any = 0
) -> None:
    """y = start + bias + x W (+ y), for y's number of rows of x from `first` on."""
    node = linear_node(group)
    x = builder.operand(node, builder.value(node.inputs[0]))
    weight, transposed = weight_of(group)
    left, right = x.at(first * x.width), builder.operand(node, builder.value(weight))
    emit_product(builder, node, left, right, y, y.rows, x.width, tb=transposed, adds=adds, start=start, bias=bias)


def product_back(builder: Builder, group: Group, d_y: Buffer, first: int = 0, into: Any = None) -> None:
    """d_W = x^T d_y (or its transpose, as the weight is stored), d_x = d_y W^T.

    first  the row of x for the first row of d_y
    into   the result of `builder.gradient(x)`, if several calls write rows of one d_x
    """
    node = linear_node(group)
    weight, stored_transposed = weight_of(group)
    x = node.inputs[0]
    d_read = builder.operand(node, d_y, id(node))
    if weight.requires_grad:
        d_weight, adds = builder.gradient(weight)
        x_read = builder.operand(node, builder.value(x)).at(first * x.shape[-1])
        left, right = (d_read, x_read) if stored_transposed else (x_read, d_read)
        emit_product(builder, node, left, right, d_weight, d_weight.rows, d_y.rows, ta=True, adds=adds)
    if x.requires_grad:
        d_x, adds = into or builder.gradient(x)
        weight_read = builder.operand(node, builder.value(weight))
        d_rows = d_x.at(first * d_x.width)
        emit_product(
            builder, node, d_read, weight_read, d_rows, d_y.rows, d_y.width, tb=not stored_transposed, adds=adds
        )


def bias_back(builder: Builder, group: Group, d_y: Buffer) -> None:
    """d_b = sum over rows of d_y."""
    node = linear_node(group)
    if len(node.inputs) > 2 and node.inputs[2].requires_grad:
        out, adds = builder.gradient(node.inputs[2])
        copy = builder.copy(d_y, id(node))
        builder.emit("column_sum", node, d=d_y, out=out, copy=copy, rows=d_y.rows, width=d_y.width, adds=adds)


def biased_product(builder: Builder, group: Group, y: Buffer, first: int = 0, stream: Any = 0) -> None:
    """y = stream + x W + b, for y's number of rows of x from `first` on; a BLAS adds the product to the rest."""
    node, last, bias = linear_node(group), group.nodes[-1], bias_of(builder, linear_node(group))
    if builder.begins_inside or not (bias or stream):
        product(builder, group, y, 0, first, start=stream, bias=bias)
        return
    if not stream:
        builder.emit("fill_bias", node, 0, y=y, bias=bias, rows=y.rows, width=y.width)
    elif bias:
        builder.emit("fill_residual", last, y=y, x=stream, bias=bias, rows=y.rows, width=y.width)
    else:
        builder.emit("copy", last, 0, x=stream, y=y, n=y.size)
    product(builder, group, y, 1, first)


def forward(builder: Builder, group: Group) -> None:
    """All rows, with the stream if a residual follows."""
    last = group.nodes[-1]
    stream = builder.value(last.inputs[0]) if last.equation.name == "residual" else 0
    biased_product(builder, group, builder.result(last), stream=stream)


def backward(builder: Builder, group: Group) -> None:
    """Bias, weight, input. A residual's cotangent is read in place, then becomes the stream's."""
    passed_back(builder, group, builder.cotangent(group.nodes[-1]))


def passed_back(builder: Builder, group: Group, d_y: Buffer) -> None:
    """Bias, weight and input from the cotangent of the group's result."""
    last = group.nodes[-1]
    bias_back(builder, group, d_y)
    product_back(builder, group, d_y)
    if last.equation.name == "residual" and last.inputs[0].requires_grad:
        builder.join(last.inputs[0], d_y, last)


register(Rule(
    name="linear + residual", pattern="residual(stream, linear(x, transpose({w}) | w))", kernel="tiled_gemm",
    stages=("train",), forward=forward, backward=backward,
    reason="the product's accumulators begin with the stream, and the stream's cotangent is shared, not copied",
))  # fmt: skip
register(Rule(
    name="linear", pattern="linear(x, transpose({w}) | w)", kernel="tiled_gemm", stages=("train",),
    forward=forward, backward=backward,
))  # fmt: skip
