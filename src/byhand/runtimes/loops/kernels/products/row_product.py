"""Kernels of `linear` for the few rows of decoding, with bias, gate or residual stream in the same pass.

With one row BLAS can reuse nothing: reading each weight once takes the time; with a few more rows it loses as much
by rearranging the weights in every call. So weights are packed as [out, in]: each result is one dot product, and a
thread reads its part in one stream; a loop that only reads and sums becomes vector instructions without asking
first whether arrays overlap.

With bfloat16 weights two columns share a word: column 2j in its lower half, 2j + 1 in its upper half. A shift or a
mask makes each a float32 again, so that every processor can do it and only the reading is halved.
"""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.kernels.pointwise.gelu import CUBIC, TWO_K
from byhand.runtimes.loops.kernels.products import linear
from byhand.runtimes.loops.kernels.products.packed_weights import UPPER, columns_of, packed_weight
from byhand.runtimes.loops.kernels.vector.exponential import exp
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import PART, PARTS
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits, vector

F = np.float32
NONE, GELU, RELU = 0, 1, 2
IN_ONE_PASS = "the bias, the gate and the stream are added while the row is in the first cache"


@kernel(costly=True)
def row_product(memory, words, x, weight, bias, stream, out, rows, inner, width, biased, added, gate, packs_bfloat16,
                part, parts):  # fmt: skip
    """out = gate(x W + bias) + stream, this thread's columns; with `packs_bfloat16` the weights are."""
    low, high = columns_of(part, parts, width)
    n = high - low
    if n <= 0:
        return
    if packs_bfloat16:
        dots_of_bfloat16(memory, words, x, weight + low // 2 * inner, out + low, rows, inner, width, n)
    else:
        dots(memory, x, weight + low * inner, out + low, rows, inner, width, n)
    for b in range(rows):
        o = vector(memory, out + b * width + low, n)
        if biased:
            d = vector(memory, bias + low, n)
            for c in range(n):
                o[c] += d[c]
        if gate == GELU:
            for c in range(n):
                v = o[c]
                o[c] = v / (F(1.0) + exp(-TWO_K * v * (F(1.0) + CUBIC * v * v)))
        if gate == RELU:
            for c in range(n):
                o[c] = F(0) if o[c] <= F(0) else o[c]
        if added:
            s = vector(memory, stream + b * width + low, n)
            for c in range(n):
                o[c] += s[c]


@compiled
def dots(memory, x, weight, out, rows, inner, width, n):
    """out[b,c] = sum over i of x[b,i] weight[c,i]: n columns of `width`, four in a pass over one stream or two."""
    fours, twos = n // 4 * 4, rows // 2 * 2
    for c in range(0, fours, 4):
        w0, w1 = vector(memory, weight + c * inner, inner), vector(memory, weight + (c + 1) * inner, inner)
        w2, w3 = vector(memory, weight + (c + 2) * inner, inner), vector(memory, weight + (c + 3) * inner, inner)
        for b in range(0, twos, 2):
            p, q = vector(memory, x + b * inner, inner), vector(memory, x + (b + 1) * inner, inner)
            s0, s1, s2, s3, t0, t1, t2, t3 = F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(0)
            for i in range(inner):
                s0 += p[i] * w0[i]
                s1 += p[i] * w1[i]
                s2 += p[i] * w2[i]
                s3 += p[i] * w3[i]
                t0 += q[i] * w0[i]
                t1 += q[i] * w1[i]
                t2 += q[i] * w2[i]
                t3 += q[i] * w3[i]
            four(memory, out + b * width + c, s0, s1, s2, s3)
            four(memory, out + (b + 1) * width + c, t0, t1, t2, t3)
        for b in range(twos, rows):
            p = vector(memory, x + b * inner, inner)
            s0, s1, s2, s3 = F(0), F(0), F(0), F(0)
            for i in range(inner):
                s0 += p[i] * w0[i]
                s1 += p[i] * w1[i]
                s2 += p[i] * w2[i]
                s3 += p[i] * w3[i]
            four(memory, out + b * width + c, s0, s1, s2, s3)
    for c in range(fours, n):
        w0 = vector(memory, weight + c * inner, inner)
        for b in range(rows):
            p, s0 = vector(memory, x + b * inner, inner), F(0)
            for i in range(inner):
                s0 += p[i] * w0[i]
            memory[out + b * width + c] = s0


@compiled
def four(memory, start, s0, s1, s2, s3):
    """Put down four results."""
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
def dots_of_bfloat16(memory, words, x, weight, out, rows, inner, width, n):
    """As `dots`, with the weights of columns c and c + 1 in the halves of a word."""
    fours, twos = n // 4 * 4, rows // 2 * 2
    for c in range(0, fours, 4):
        w0 = vector(words, weight + c // 2 * inner, inner)
        w1 = vector(words, weight + (c // 2 + 1) * inner, inner)
        for b in range(0, twos, 2):
            p, q = vector(memory, x + b * inner, inner), vector(memory, x + (b + 1) * inner, inner)
            s0, s1, s2, s3, t0, t1, t2, t3 = F(0), F(0), F(0), F(0), F(0), F(0), F(0), F(0)
            for i in range(inner):
                v0, v1, v2, v3 = lower(w0[i]), upper(w0[i]), lower(w1[i]), upper(w1[i])
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
                s0 += p[i] * lower(w0[i])
                s1 += p[i] * upper(w0[i])
                s2 += p[i] * lower(w1[i])
                s3 += p[i] * upper(w1[i])
            four(memory, out + b * width + c, s0, s1, s2, s3)
    for c in range(fours, n):
        w0 = vector(words, weight + c // 2 * inner, inner)
        for b in range(rows):
            p, s0 = vector(memory, x + b * inner, inner), F(0)
            for i in range(inner):
                s0 += p[i] * (upper(w0[i]) if c % 2 else lower(w0[i]))
            memory[out + b * width + c] = s0


def product(builder: Builder, group: Group) -> None:
    """x W with what surrounds it: bias, gate or the residual stream."""
    node, last = linear.linear_node(group), group.nodes[-1]
    x, out = builder.value(node.inputs[0]), builder.result(last)
    biased, added = len(node.inputs) > 2, last.equation.name == "residual"
    gate = {"gelu": GELU, "relu": RELU}.get(last.equation.name, NONE)
    rows, inner, width = out.rows, x.width, out.width
    weight = packed_weight(builder, group, inner, width)
    call = builder.emit(
        "row_product", last, 2 * rows * inner * width, x=x, weight=weight,
        bias=builder.value(node.inputs[2]) if biased else 0, stream=builder.value(last.inputs[0]) if added else 0,
        out=out, rows=rows, inner=inner, width=width, biased=int(biased), added=int(added), gate=gate,
        packs_bfloat16=int(builder.bfloat16_weights), part=PART, parts=PARTS,
    )  # fmt: skip
    call.label = group.rule.name
    builder.meet()


for name, covers, match, reason in (
    ("linear + residual", (("transpose", ""), "linear", "residual"), linear.match_residual, IN_ONE_PASS),
    ("linear + gelu", ("linear", "gelu"), linear.match_biased, IN_ONE_PASS),
    ("linear + relu", ("linear", "relu"), linear.match_biased, IN_ONE_PASS),
    ("linear", (("transpose", ""), "linear"), linear.match, ""),
):
    register(Rule(name, covers, "row_product", ("decode",), forward=product, match=match, reason=reason))
