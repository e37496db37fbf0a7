"""`linear` then `cross_entropy` over a large vocabulary: the logits of some rows at a time.

The logits (rows, V) of a share would be its largest array by far. Here ROWS rows of them lie in one array, which is
filled, becomes the loss and the cotangent, is used up for the weight, the bias and the input, and filled again. The
weight's gradient is read and written once for each chunk, so a chunk must not be small. All kernels are those of the
two equations.
"""

from __future__ import annotations

import math
from typing import Any

from byhand.runtimes.loops.kernels.loss import cross_entropy
from byhand.runtimes.loops.kernels.products import linear
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import LOSS_SLOT, Buffer
from byhand.runtimes.loops.lowering.rules import Group, Rule, register

VOCABULARY = 4096  # below, the logits are not what fills the memory
ROWS = 256  # in a chunk; even, so that rows of bfloat16 begin on a whole word


def match(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """linear -> cross_entropy at the root, with a large vocabulary and more than one chunk."""
    head = graph.only(node.inputs[0], "linear")
    if not (head and cross_entropy.match(node, graph)):
        return None
    shape = node.inputs[0].shape
    pays = shape[-1] >= VOCABULARY and math.prod(shape[:-1]) > ROWS
    return (*linear.match(head, graph), node) if pays else None


def _chunks(group: Group) -> list[tuple[int, int]]:
    """Return first row and number of rows of each chunk."""
    rows = math.prod(group.nodes[-1].inputs[0].shape[:-1])
    return [(first, min(ROWS, rows - first)) for first in range(0, rows, ROWS)]


def _loss(builder: Builder, group: Group, first: int, count: int) -> Buffer:
    """Add the loss of some rows; return the buffer that then holds their logits' cotangent."""
    head, last = linear.linear_node(group), group.nodes[-1]
    vocab = last.inputs[0].shape[-1]
    logits = builder.scratch(head, f"rows {first}", (count, vocab))
    linear.biased_product(builder, group, logits, first)
    targets = builder.value(last.inputs[1]).at(first)
    builder.emit("cross_entropy", last, logits=logits, targets=targets, rows=count, vocab=vocab, slot=LOSS_SLOT)
    return logits


def forward(builder: Builder, group: Group) -> None:
    """The loss alone. In training `backward` emits it too, so that no logits are computed twice."""
    if not builder.trains:
        for first, count in _chunks(group):
            _loss(builder, group, first, count)


def backward(builder: Builder, group: Group) -> None:
    """Chunk by chunk: the loss, then bias, weight and input from its cotangent."""
    x = linear.linear_node(group).inputs[0]
    into = builder.gradient(x) if x.requires_grad else None
    for first, count in _chunks(group):
        d = _loss(builder, group, first, count)
        linear.bias_back(builder, group, d)
        linear.product_back(builder, group, d, first, into)


register(Rule(
    name="LM head + cross-entropy", covers=(("transpose", ""), "linear", "cross_entropy"), kernel="cross_entropy",
    stages=("train",), match=match, forward=forward, backward=backward, is_loss=True,
    reason="of a large vocabulary only the logits of some rows exist at a time",
))  # fmt: skip
