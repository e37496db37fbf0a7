"""Kernels of `linear` for the few rows of decoding, with bias, activation or residual stream in the same pass.

With one row BLAS can reuse nothing: reading each weight once takes the time; with a few more rows it loses as much
by rearranging the weights in every call. So weights are packed as [out, in]: each result is one dot product, and a
thread reads its part in one stream; a loop that only reads and sums becomes vector instructions without asking
first whether arrays overlap.

With bfloat16 weights two columns share a word: column 2j in its lower half, 2j + 1 in its upper half. A shift or a
mask makes each a float32 again, so that every processor can do it and only the reading is halved.
"""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.kernels.linear import linear
from byhand.runtimes.loops.kernels.linear.activation_rules import alike, emit_gate, layers_of
from byhand.runtimes.loops.kernels.linear.activations import GATES, VALUES
from byhand.runtimes.loops.kernels.vector.parts import columns_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits, matrix, vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS, Buffer

F = np.float32
NUMBERS = {name: number for number, name in enumerate(VALUES, 1)}  # of the activations; 0: none
UPPER = np.int32(-0x10000)
IN_ONE_PASS = "bias, activation and stream are applied while the row is in the first cache"


@kernel
def pack(memory, weight, packed, inner, width, transposed, part, parts):
    """packed[c,i] = weight[i,c], this thread's columns; sixteen columns, a cache line, in a pass."""
    low, high = columns_of(part, parts, width)
    p = matrix(memory, packed, width, inner)
    for first in range(low, high, 16):
        for i in range(inner):
            for c in range(first, min(first + 16, high)):
                p[c, i] = memory[weight + c * inner + i] if transposed else memory[weight + i * width + c]


@kernel
def pack_bfloat16(words, weight, packed, inner, width, transposed, part, parts):
    """As `pack`, two columns in the halves of a word; the weights are bfloat16 already, their lower halves 0."""
    low, high = columns_of(part, parts, width)
    p = matrix(words, packed, (width + 1) // 2, inner)
    across, down = (inner, 1) if transposed else (1, width)
    for first in range(low, high, 16):
        for i in range(inner):
            for c in range(first, min(first + 16, high), 2):
                place = weight + c * across + i * down
                second = words[place + across] if c + 1 < width else np.int32(0)
                p[c // 2, i] = ((words[place] >> np.int32(16)) & np.int32(0xFFFF)) | (second & UPPER)


@compiled
def four(memory, start, s0, s1, s2, s3):
    """Store four results."""
    o = vector(memory, start, 4)
    o[0], o[1], o[2], o[3] = s0, s1, s2, s3


@compiled
def lower(word):
    """Return the float32 whose upper half is the word's lower half."""
    return float_of_bits(word << np.int32(16))


@compiled
def upper(word):
    """Return the float32 whose upper half is the word's upper half."""
    return float_of_bits(word & UPPER)


@compiled
def same(number):
    """Return the number."""
    return number


@compiled
def columns(memory, weight, c, inner):
    """Return columns c to c + 3 of the weights."""
    w0, w1 = vector(memory, weight + c * inner, inner), vector(memory, weight + (c + 1) * inner, inner)
    w2, w3 = vector(memory, weight + (c + 2) * inner, inner), vector(memory, weight + (c + 3) * inner, inner)
    return w0, w1, w2, w3


@compiled
def shared_columns(words, weight, c, inner):
    """Return the words of columns c to c + 3, of which two share one."""
    w0, w2 = vector(words, weight + c // 2 * inner, inner), vector(words, weight + (c // 2 + 1) * inner, inner)
    return w0, w0, w2, w2


def dots_of(columns, even, odd):
    """Make the products with packed weights, from their columns and from the numbers of an even and an odd one."""

    @compiled
    def dots(memory, weights, x, weight, out, rows, inner, width, n):
        """out[b,c] = sum over i of x[b,i] weight[c,i]: n columns of `width`, four in a pass over one row or two."""
        fours, twos = n // 4 * 4, rows // 2 * 2
        for c in range(0, fours, 4):
            w0, w1, w2, w3 = columns(weights, weight, c, inner)
            for b in range(0, twos, 2):
                p, q = vector(memory, x + b * inner, inner), vector(memory, x + (b + 1) * inner, inner)
                s0, s1, s2, s3, t0, t1, t2, t3 = F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(0)
                for i in range(inner):
                    v0, v1, v2, v3 = even(w0[i]), odd(w1[i]), even(w2[i]), odd(w3[i])
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
                    s0 += p[i] * even(w0[i])
                    s1 += p[i] * odd(w1[i])
                    s2 += p[i] * even(w2[i])
                    s3 += p[i] * odd(w3[i])
                four(memory, out + b * width + c, s0, s1, s2, s3)
        for c in range(fours, n):
            w0, w1, _, _ = columns(weights, weight, c // 2 * 2, inner)
            w = w1 if c % 2 else w0
            for b in range(rows):
                p, s0 = vector(memory, x + b * inner, inner), F(0)
                for i in range(inner):
                    s0 += p[i] * (odd(w[i]) if c % 2 else even(w[i]))
                memory[out + b * width + c] = s0

    return dots


dots, dots_of_bfloat16 = dots_of(columns, same, same), dots_of(shared_columns, lower, upper)


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


@kernel(costly=True)
def row_product(memory, words, x, weight, bias, stream, out, rows, inner, width, biased, added, activation,
                packs_bfloat16, part, parts):  # fmt: skip
    """out = activation(x W + bias) + stream, this thread's columns; with `packs_bfloat16` the weights are."""
    low, high = columns_of(part, parts, width)
    n = high - low
    if n <= 0:
        return
    if packs_bfloat16:
        dots_of_bfloat16(memory, words, x, weight + low // 2 * inner, out + low, rows, inner, width, n)
    else:
        dots(memory, memory, x, weight + low * inner, out + low, rows, inner, width, n)
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


def packed_weight(builder: Builder, group: Group, inner: int, width: int) -> Buffer:
    """Return the weight as the loops read it; unless it is stored so, the plan's preparations pack it."""
    tensor, transposed = linear.weight_of(group)
    weight = builder.value(tensor)
    if transposed and not builder.bfloat16_weights:
        return weight
    shape, dtype = (((width + 1) // 2, inner), "int32") if builder.bfloat16_weights else ((width, inner), "float32")
    packed = Buffer(f"{weight.name}:packed", shape, "input", dtype)
    builder.prepare(
        "pack_bfloat16" if builder.bfloat16_weights else "pack", weight=weight, packed=packed, inner=inner,
        width=width, transposed=int(transposed), part=PART, parts=PARTS,
    )  # fmt: skip
    return packed


def forward(builder: Builder, group: Group) -> None:
    """Product, bias, activation and residual stream in one call, after which each thread has its columns."""
    node, last = linear.linear_node(group), group.nodes[-1]
    x, out = builder.value(node.inputs[0]), builder.result(last)
    bias, added = linear.bias_of(builder, node), last.equation.name == "residual"
    rows, inner, width = out.rows, x.width, out.width
    weight = packed_weight(builder, group, inner, width)
    call = builder.emit(
        "row_product", last, 2 * rows * inner * width, x=x, weight=weight, bias=bias,
        stream=builder.value(last.inputs[0]) if added else 0, out=out, rows=rows, inner=inner, width=width,
        biased=int(bias != 0), added=int(added), activation=NUMBERS.get(last.equation.name, 0),
        packs_bfloat16=int(builder.bfloat16_weights), part=PART, parts=PARTS,
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
        where=alike, reason="a thread gates the columns that it has just made, while they are in the first cache",
    ))  # fmt: skip
