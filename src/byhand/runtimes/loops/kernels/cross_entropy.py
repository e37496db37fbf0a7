"""Kernels of `cross_entropy`, the end of the graph: loss and derivative in one pass over the logits.

(p - onehot) / N overwrites the logits, so probabilities need no array. Logits are kept only if something else
reads them; then it overwrites a copy.

With a large vocabulary the logits (rows, V) of a share would be its largest array by far. So after `linear` one array
holds CHUNK rows at a time. It is filled, becomes the loss and the cotangent, contributes to the gradients of weight,
bias and input, and is filled again. Each chunk reads and writes the weight's gradient, so it must not be small.

A softcap before it joins the pass: only one row's derivatives are kept.
"""

from __future__ import annotations

import math

import numpy as np

from byhand.engine.graph.record import Graph
from byhand.runtimes.loops.kernels.linear import linear
from byhand.runtimes.loops.kernels.vector.arithmetic import exp, largest, tanh
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import LOSS_SLOT, Buffer
from byhand.runtimes.loops.program.controls import WEIGHT

F = np.float32
VOCABULARY = 4096  # below, logits do not dominate memory
SUMMED = 1024  # terms of a sum in float32; longer ones, of a large vocabulary, would lose 1e-5 of themselves
CHUNK = 256  # rows; even, so that rows of two-byte numbers begin on a whole word


@kernel
def cross_entropy(memory, words, controls, logits, targets, rows, vocab, slot, cap, derivatives):
    """Add the rows' losses to controls[slot]; logits become (p - onehot) times the weight of a row.

    Rows without a target (-1) are ignored.

    cap          offset of the cap if logits are capped first, else 0
    derivatives  scratch for a row: the derivatives of cap tanh(z / cap), finally multiplied with the row
    """
    weight = F(controls[WEIGHT])
    derivative = vector(memory, derivatives, vocab)
    total = 0.0
    for i in range(rows):
        z, target = vector(memory, logits + i * vocab, vocab), words[targets + i]
        if target < 0:
            z[:] = F(0)
            continue
        if cap:
            most, inverse = memory[cap], F(1.0) / memory[cap]
            for v in range(vocab):
                t = tanh(z[v] * inverse)
                z[v] = most * t
                derivative[v] = F(1.0) - t * t
        m = largest(words, logits + i * vocab, vocab)
        shifted = np.float64(z[target]) - np.float64(m)
        sum_e = 0.0
        for first in range(0, vocab, SUMMED):
            part = F(0)
            for v in range(first, min(first + SUMMED, vocab)):
                e = exp(z[v] - m)
                z[v] = e
                part += e
            sum_e += part
        total += math.log(sum_e) - shifted
        share = weight / F(sum_e)
        for v in range(vocab):
            z[v] *= share
        z[target] -= weight
        if cap:
            for v in range(vocab):
                z[v] *= derivative[v]
    controls[slot] += total * controls[WEIGHT]


def at_root(group: Group, graph: Graph) -> bool:
    """Return whether the loss is the plan's result."""
    return graph.root.node is group.nodes[-1]


def uses_up_logits(group: Group, graph: Graph) -> bool:
    """Return whether nothing else reads the logits, so that the cotangent may overwrite them."""
    logits = group.nodes[0].inputs[0]
    return at_root(group, graph) and logits.node is not None and graph.uses(logits) == 1


def _emit(builder: Builder, group: Group, logits: Buffer, first: int = 0) -> None:
    """Append the call for the targets from `first` on, one for each row of logits."""
    node = group.nodes[-1]
    caps = [builder.constant(n.static["cap"]) for n in group.nodes if n.equation.name == "softcap"]
    builder.emit(
        "cross_entropy", node, logits=logits, targets=builder.value(node.inputs[1]).at(first), rows=logits.rows,
        vocab=logits.width, slot=LOSS_SLOT, cap=caps[0] if caps else 0,
        derivatives=builder.scratch(node, "derivatives", (logits.width,)) if caps else 0,
    )  # fmt: skip


def forward(builder: Builder, group: Group) -> None:
    """Loss and cotangent of the logits at once."""
    _emit(builder, group, builder.value(group.nodes[0].inputs[0]))


def backward(builder: Builder, group: Group) -> None:
    """The forward call has replaced the logits by their cotangent."""
    logits = group.nodes[0].inputs[0]
    builder.join(logits, builder.value(logits), group.nodes[0])


def forward_kept(builder: Builder, group: Group) -> None:
    """The same in a copy of the logits."""
    (node,) = group.nodes
    logits, copy = builder.value(node.inputs[0]), builder.saved(node, "d_logits", node.inputs[0].shape)
    builder.emit("copy", node, 0, x=logits, y=copy, n=copy.size)
    _emit(builder, group, copy)


def backward_kept(builder: Builder, group: Group) -> None:
    """The copy holds the logits' cotangent."""
    (node,) = group.nodes
    builder.join(node.inputs[0], builder.saved(node, "d_logits", node.inputs[0].shape), node)


def pays(group: Group, graph: Graph) -> bool:
    """Return whether the vocabulary is large and there is more than one chunk of rows."""
    shape = group.nodes[-1].inputs[0].shape
    return at_root(group, graph) and shape[-1] >= VOCABULARY and math.prod(shape[:-1]) > CHUNK


def _chunks(group: Group) -> list[tuple[int, int]]:
    """Return first row and number of rows of each chunk."""
    rows = math.prod(group.nodes[-1].inputs[0].shape[:-1])
    return [(first, min(CHUNK, rows - first)) for first in range(0, rows, CHUNK)]


def _loss(builder: Builder, group: Group, first: int, count: int) -> Buffer:
    """Add the loss of some rows; return the buffer with their logits' cotangent."""
    head, last = linear.linear_node(group), group.nodes[-1]
    vocab = last.inputs[0].shape[-1]
    logits = builder.scratch(head, f"rows {first}", (count, vocab))
    linear.biased_product(builder, group, logits, first)
    _emit(builder, group, logits, first)
    return logits


def forward_head(builder: Builder, group: Group) -> None:
    """The loss alone. In training `backward` emits it too, to compute logits only once."""
    if not builder.trains:
        for first, count in _chunks(group):
            _loss(builder, group, first, count)


def backward_head(builder: Builder, group: Group) -> None:
    """Chunk by chunk: the loss, then bias, weight and input from its cotangent."""
    x = linear.linear_node(group).inputs[0]
    into = builder.gradient(x) if x.requires_grad else None
    for first, count in _chunks(group):
        d = _loss(builder, group, first, count)
        linear.bias_back(builder, group, d)
        linear.product_back(builder, group, d, first, into)


register(Rule(
    name="cross-entropy with its derivative", pattern="cross_entropy(softcap?(logits), <>)", kernel="cross_entropy",
    stages=("train",), where=uses_up_logits, forward=forward, backward=backward, is_loss=True,
    reason="probabilities get no array of their own: the logits become their cotangent in the same pass",
))  # fmt: skip
register(Rule(
    name="cross_entropy", pattern="cross_entropy(logits, <>)", kernel="cross_entropy", stages=("train",),
    where=at_root, forward=forward_kept, backward=backward_kept, is_loss=True,
))  # fmt: skip
register(Rule(
    name="LM head + cross-entropy", pattern="cross_entropy(softcap?(linear(x, transpose({w}) | w)), <>)",
    kernel="cross_entropy", stages=("train",), where=pays, forward=forward_head, backward=backward_head,
    is_loss=True,
    reason="with a large vocabulary, only some rows' logits exist at a time",
))  # fmt: skip
