"""Kernel of `softcap` for decoding, after the linear layer. In training the loss caps its own logits."""

import numpy as np

from byhand.runtimes.loops.kernels.linear import row_product
from byhand.runtimes.loops.kernels.threads import columns_of
from byhand.runtimes.loops.kernels.vector.arithmetic import tanh
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS


@kernel
def softcap(memory, x, cap, rows, width, part, parts):
    """x = cap tanh(x / cap), this thread's columns."""
    low, high = columns_of(part, parts, width)
    most, inverse = memory[cap], np.float32(1.0) / memory[cap]
    for b in range(rows):
        a = vector(memory, x + b * width + low, high - low)
        for c in range(high - low):
            a[c] = most * tanh(a[c] * inverse)


def decode(builder: Builder, group: Group) -> None:
    """Each thread caps the columns that it has just computed, without a barrier."""
    row_product.forward(builder, group)
    last = group.nodes[-1]
    x = builder.result(last)
    builder.emit(
        "softcap", last, x=x, cap=builder.constant(last.static["cap"]), rows=x.rows, width=x.width, part=PART,
        parts=PARTS,
    )  # fmt: skip


register(Rule(
    name="linear + softcap", pattern="softcap(linear(x, transpose({w}) | w))", kernel="softcap", stages=("decode",),
    forward=decode,
    reason="each thread caps the logits it has just computed, while they are in the L1 cache",
))  # fmt: skip
