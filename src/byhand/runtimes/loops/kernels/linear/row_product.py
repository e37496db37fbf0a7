"""Kernels of `linear` for the few rows of decoding, with bias, activation or residual stream in the same pass.

With one row BLAS can reuse nothing: reading each weight once takes the time; with a few more rows it loses as much
by rearranging the weights in every call. So weights are packed as [out, in]: each result is one dot product, and a
thread reads its part in one stream; a loop that only reads and sums becomes vector instructions without asking
first whether arrays overlap.

Weights may be kept in any format that says how columns share words (`kernels/formats/`): there are these kernels for
each, and only the reading is less.
"""

from typing import Any

import numpy as np

from byhand.formats.registry import Format
from byhand.runtimes.loops.kernels.formats.contract import PACKED, Packed, kernel_of
from byhand.runtimes.loops.kernels.linear import linear
from byhand.runtimes.loops.kernels.linear.activation_rules import alike, emit_gate, layers_of
from byhand.runtimes.loops.kernels.linear.activations import GATES, VALUES
from byhand.runtimes.loops.kernels.linear.packed_weights import load_of, packed_weight
from byhand.runtimes.loops.kernels.threads import columns_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS

F = np.float32
NUMBERS = {name: number for number, name in enumerate(VALUES, 1)}  # of the activations; 0: none
IN_ONE_PASS = "bias, activation and stream are applied while the row is in the L1 cache"


@compiled
def four(memory, start, s0, s1, s2, s3):
    """Store four results."""
    o = vector(memory, start, 4)
    o[0], o[1], o[2], o[3] = s0, s1, s2, s3


def dots_of(kind: Packed) -> Any:
    """Make the products with packed weights of a format."""
    shared, length, load = len(kind.loads), kind.length, load_of(kind)
    load0, load1, load2, load3 = (kind.loads[c % shared] for c in range(4))
    row1, row2, row3 = (c // shared for c in (1, 2, 3))

    @compiled
    def dots(memory, words, x, weight, out, rows, inner, width, n):
        """out[b,c] = sum over i of x[b,i] weight[c,i]: n columns of `width`, four in a pass over one row or two."""
        size, fours, twos = length(inner), n // 4 * 4, rows // 2 * 2
        for c in range(0, fours, 4):
            first = weight + c // shared * size
            w0, w1 = vector(words, first, size), vector(words, first + row1 * size, size)
            w2, w3 = vector(words, first + row2 * size, size), vector(words, first + row3 * size, size)
            for b in range(0, twos, 2):
                p, q = vector(memory, x + b * inner, inner), vector(memory, x + (b + 1) * inner, inner)
                s0, s1, s2, s3, t0, t1, t2, t3 = F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(0)
                for i in range(inner):
                    v0, v1 = load0(w0, i, inner), load1(w1, i, inner)
                    v2, v3 = load2(w2, i, inner), load3(w3, i, inner)
                    s0 += p[i] * v0
                    s1 += p[i] * v1
                    s2 += p[i] * v2
                    s3 += p[i] * v3
                    t0 += q[i] * v0
                    t1 += q[i] * v1
                    t2 += q[i] * v2
                    t3 += q[i] * v3
                four(memory, out + b * width + c, s0, s1, s2, s3)
                four(memory, out + (b + 1) * width + c, t0, t1, t2, t3)
            for b in range(twos, rows):
                p = vector(memory, x + b * inner, inner)
                s0, s1, s2, s3 = F(0), F(0), F(0), F(0)
                for i in range(inner):
                    s0 += p[i] * load0(w0, i, inner)
                    s1 += p[i] * load1(w1, i, inner)
                    s2 += p[i] * load2(w2, i, inner)
                    s3 += p[i] * load3(w3, i, inner)
                four(memory, out + b * width + c, s0, s1, s2, s3)
        for c in range(fours, n):
            w, k = vector(words, weight + c // shared * size, size), c % shared
            for b in range(rows):
                p, s0 = vector(memory, x + b * inner, inner), F(0)
                for i in range(inner):
                    s0 += p[i] * load(w, k, i, inner)
                memory[out + b * width + c] = s0

    return dots


@compiled
def nothing(o, n, activation):
    """Leave o as it is."""


def then(before, number, value):
    """Make the function that does what `before` does, and applies one more activation if that number is given."""

    @compiled
    def activated(o, n, activation):
        before(o, n, activation)
        if activation == number:
            for c in range(n):
                o[c] = value(o[c])

    return activated


activate = nothing
for name, number in NUMBERS.items():
    activate = then(activate, number, VALUES[name])


def row_product_of(format: Format, kind: Packed) -> None:
    """Make the kernel for weights of a format."""
    shared, length, dots = len(kind.loads), kind.length, dots_of(kind)

    @kernel(name=kernel_of("row_product", format), costly=True)
    def row_product(memory, words, x, weight, bias, stream, out, rows, inner, width, biased, added, activation,
                    part, parts):  # fmt: skip
        """out = activation(x W + bias) + stream, this thread's columns."""
        low, high = columns_of(part, parts, width)
        n = high - low
        if n <= 0:
            return
        dots(memory, words, x, weight + low // shared * length(inner), out + low, rows, inner, width, n)
        for b in range(rows):
            o = vector(memory, out + b * width + low, n)
            if biased:
                d = vector(memory, bias + low, n)
                for c in range(n):
                    o[c] += d[c]
            if activation:
                activate(o, n, activation)
            if added:
                s = vector(memory, stream + b * width + low, n)
                for c in range(n):
                    o[c] += s[c]


for format, kind in PACKED.items():
    row_product_of(format, kind)


def forward(builder: Builder, group: Group) -> None:
    """Product, bias, activation and residual stream in one call, after which each thread has its columns."""
    node, last = linear.linear_node(group), group.nodes[-1]
    x, out = builder.value(node.inputs[0]), builder.result(last)
    bias, added = linear.bias_of(builder, node), last.equation.name == "residual"
    rows, inner, width = out.rows, x.width, out.width
    weight = packed_weight(builder, *linear.weight_of(group), inner, width)
    call = builder.emit(
        kernel_of("row_product", builder.weights), last, 2 * rows * inner * width, x=x, weight=weight, bias=bias,
        stream=builder.value(last.inputs[0]) if added else 0, out=out, rows=rows, inner=inner, width=width,
        biased=int(bias != 0), added=int(added), activation=NUMBERS.get(last.equation.name, 0),
        part=PART, parts=PARTS,
    )  # fmt: skip
    call.label = group.rule.name


def gate(builder: Builder, group: Group) -> None:
    """Each thread gates the columns that it has just made, so they need not meet between."""
    layers = layers_of(group)
    for layer in layers:
        forward(builder, layer)
    emit_gate(builder, group.nodes[-1], *(builder.result(linear.linear_node(layer)) for layer in layers))


for name, pattern, reason in (
    ("linear + residual", f"residual(stream, {linear.LINEAR})", IN_ONE_PASS),
    *((f"linear + {name}", f"{name}({linear.LINEAR})", IN_ONE_PASS) for name in NUMBERS),
    ("linear", linear.LINEAR, ""),
):
    register(Rule(name, pattern, "row_product", ("decode",), forward=forward, reason=reason))
for name in GATES:
    register(Rule(
        f"linear, linear + {name}", f"{name}({linear.LINEAR}, {linear.LINEAR})", name, ("decode",), forward=gate,
        where=alike, reason="a thread gates the columns that it has just made, while they are in the L1 cache",
    ))  # fmt: skip
