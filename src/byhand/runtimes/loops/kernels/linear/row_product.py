"""Kernels of `linear` in generation, for a token's single row or a prompt's many.

With one row, reading the weights once dominates. So weights are packed in panels, which a thread reads sequentially,
and the same call applies bias, activation and residual stream to the fresh result. With many rows a block of panels
stays in the L2 cache while all rows pass.

Weights may have any format with `Panels` (`kernels/formats/`): each has its kernel.
"""

from byhand.formats.registry import Format
from byhand.runtimes.loops.kernels.formats.contract import PANELS, Panels, kernel_of
from byhand.runtimes.loops.kernels.linear import linear
from byhand.runtimes.loops.kernels.linear.activation_rules import alike, emit_gate, layers_of
from byhand.runtimes.loops.kernels.linear.activations import GATES, VALUES
from byhand.runtimes.loops.kernels.linear.packed_weights import packed_weight
from byhand.runtimes.loops.kernels.products.panel_tile import MOST, panel_tile_of, panels_of
from byhand.runtimes.loops.kernels.products.tiles import BLOCK
from byhand.runtimes.loops.kernels.threads import columns_of
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, ROWS
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import ZERO, compiled
from byhand.runtimes.loops.machine.views import address_of, vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS

NUMBERS = {name: number for number, name in enumerate(VALUES, 1)}  # of activations; 0: none
IN_ONE_PASS = "bias, activation and stream are applied while the row is in the L1 cache"
EDGE = ROWS * MOST * LANES  # float32 of a tile that extends beyond C


@compiled
def nothing(o, n, activation):
    """Leave o as it is."""


def then(before, number, value):
    """Extend `before` by the activation of this number."""

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


@compiled
def finish(memory, out, bias, stream, rows, width, n, activation):
    """Add the bias, apply the activation and add the stream to n columns of some rows; bias and stream may be 0."""
    for b in range(rows):
        o = vector(memory, out + b * width, n)
        if bias:
            d = vector(memory, bias, n)
            for c in range(n):
                o[c] += d[c]
        if activation:
            activate(o, n, activation)
        if stream:
            s = vector(memory, stream + b * width, n)
            for c in range(n):
                o[c] += s[c]


@compiled
def rows_of_tile(left):
    """Return the height of the next tile, given the rows left."""
    rows = ROWS
    while rows > left:
        rows >>= 1
    return rows


def row_product_of(format: Format, kind: Panels) -> None:
    """Make the kernel for weights of a format."""
    block, words_of_block, left, sums = kind.block, kind.words, kind.left, kind.sums
    panel_tile, most_panels = panel_tile_of(format.name, kind), compiled(panels_of)

    @kernel(name=kernel_of("row_product", format), costly=True)
    def row_product(
        memory, words, x, weight, bias, stream, out, rows, inner, width, activation, scratch, part, parts
    ):
        """out = activation(x W + bias) + stream, this thread's columns; bias and stream may be 0."""
        low, high = columns_of(part, parts, width)
        base, blocks = address_of(memory), (inner + block - 1) // block
        size = blocks * words_of_block
        together = max(MOST, BLOCK // size // MOST * MOST) * LANES
        start, row = left(memory, words, x, rows, inner, scratch + EDGE)
        for first in range(low, high, together):
            last, b = min(first + together, high), 0
            while b < rows:
                height = rows_of_tile(rows - b)
                most, c = most_panels(height, sums), first
                while c < last:
                    count = most if last - c > (most - 1) * LANES else 1
                    there = min(count * LANES, last - c)
                    at, step = out + b * width + c, width
                    if there < count * LANES:
                        at, step = scratch, count * LANES
                    panel_tile(
                        height, count, base + 4 * at, step, base + 4 * (start + b * row), row,
                        base + 4 * (weight + c // LANES * size), size, blocks,
                    )  # fmt: skip
                    if at == scratch:
                        for i in range(height):
                            for j in range(there):
                                memory[out + (b + i) * width + c + j] = memory[scratch + i * step + j]
                    c += count * LANES
                finish(
                    memory, out + b * width + first, bias + first if bias else ZERO,
                    stream + b * width + first if stream else ZERO, height, width, last - first, activation,
                )  # fmt: skip
                b += height


for format, kind in PANELS.items():
    row_product_of(format, kind)


def forward(builder: Builder, group: Group) -> None:
    """Product, bias, activation and residual stream in one call, each thread its columns."""
    node, last = linear.linear_node(group), group.nodes[-1]
    x, out = builder.value(node.inputs[0]), builder.result(last)
    rows, inner, width = out.rows, x.width, out.width
    kind = PANELS[builder.weights]
    call = builder.emit(
        kernel_of("row_product", builder.weights), last, 2 * rows * inner * width, x=x,
        weight=packed_weight(builder, *linear.weight_of(group), inner, width), bias=linear.bias_of(builder, node),
        stream=builder.value(last.inputs[0]) if last.equation.name == "residual" else 0, out=out, rows=rows,
        inner=inner, width=width, activation=NUMBERS.get(last.equation.name, 0),
        scratch=builder.shared_scratch(EDGE + rows * -(-inner // kind.block) * kind.left_words),
        part=PART, parts=PARTS,
    )  # fmt: skip
    call.label = group.rule.name


def gate(builder: Builder, group: Group) -> None:
    """Each thread gates the columns that it has just computed, without a barrier."""
    layers = layers_of(group)
    for layer in layers:
        forward(builder, layer)
    emit_gate(builder, group.nodes[-1], *(builder.result(linear.linear_node(layer)) for layer in layers))


for name, pattern, reason in (
    ("linear + residual", f"residual(stream, {linear.LINEAR})", IN_ONE_PASS),
    *((f"linear + {name}", f"{name}({linear.LINEAR})", IN_ONE_PASS) for name in NUMBERS),
    ("linear", linear.LINEAR, ""),
):
    register(Rule(name, pattern, "row_product", ("decode", "fill"), forward=forward, reason=reason))
for name in GATES:
    register(Rule(
        f"linear, linear + {name}", f"{name}({linear.LINEAR}, {linear.LINEAR})", name, ("decode", "fill"),
        forward=gate, where=alike,
        reason="each thread gates the columns it has just computed, while they are in the L1 cache",
    ))  # fmt: skip
