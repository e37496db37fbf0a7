"""Groups: which neighbouring applications become one, and why it pays.

Each fusion names the last equation of its group and the reason; what it gives is measured by `byhand bench fusions`.
The rules without a reason handle an equation alone. What no rule takes goes to the reference halves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from byhand.runtimes.loops.graph.record import Graph
from byhand.runtimes.loops.kernels.attention import causal_self_attention, key_value_cache
from byhand.runtimes.loops.kernels.embedding import decoding, embedding
from byhand.runtimes.loops.kernels.loss import cross_entropy, head_loss
from byhand.runtimes.loops.kernels.norm import layer_norm
from byhand.runtimes.loops.kernels.pointwise import gelu, relu, residual
from byhand.runtimes.loops.kernels.products import linear, row_product
from byhand.runtimes.loops.lowering import fallback as reference
from byhand.runtimes.loops.lowering.builder import Group


@dataclass(frozen=True)
class Fusion:
    """A rule: applications that end in `last` and match become one group.

    reason  why that is faster; "" for the kernels of one equation alone
    """

    name: str
    last: str
    match: Callable[[Any, Graph], tuple[Any, ...] | None]
    forward: Callable[..., None]
    backward: Callable[..., None]
    reason: str


FUSIONS = (
    Fusion(
        "attention", "merge_heads",
        causal_self_attention.match, causal_self_attention.forward, causal_self_attention.backward,
        "some queries' scores stay in the first cache from product to softmax to product; of what is masked only a "
        "corner of a tile is computed; splitting and merging heads moves nothing",
    ),
    Fusion(
        "linear + residual", "residual", linear.match_residual, linear.forward_residual, linear.backward_residual,
        "the product begins its sums with the stream, and the stream's cotangent is shared, not copied",
    ),
    Fusion(
        "linear + gelu", "gelu", gelu.match, gelu.forward, gelu.backward,
        "bias, gate and derivative in one pass over the widest array; going back is one product, not another exp",
    ),
    Fusion(
        "linear + relu", "relu", relu.match, relu.forward, relu.backward,
        "bias and cut in one pass, in place",
    ),
    Fusion(
        "embeddings", "add_positional", embedding.match, embedding.forward, embedding.backward,
        "token and position rows are read once and written once",
    ),
    Fusion(
        "LM head + cross-entropy", "cross_entropy", head_loss.match, head_loss.forward, head_loss.backward,
        "of a large vocabulary only the logits of some rows exist at a time",
    ),
    Fusion(
        "cross-entropy with its derivative", "cross_entropy",
        cross_entropy.match, cross_entropy.forward, cross_entropy.backward,
        "probabilities get no array of their own: the logits become their cotangent in the same pass",
    ),
    Fusion("layer_norm", "layer_norm", layer_norm.match, layer_norm.forward, layer_norm.backward, ""),
    Fusion("linear", "linear", linear.match, linear.forward, linear.backward, ""),
    Fusion("residual", "residual", residual.match, residual.forward, residual.backward, ""),
    Fusion("gelu", "gelu", gelu.match_alone, gelu.forward_alone, gelu.backward_alone, ""),
    Fusion("relu", "relu", relu.match_alone, relu.forward_alone, relu.backward_alone, ""),
    Fusion(
        "cross_entropy", "cross_entropy",
        cross_entropy.match_kept, cross_entropy.forward_kept, cross_entropy.backward_kept, "",
    ),
)  # fmt: skip


def without(name: str) -> tuple[Fusion, ...]:
    """Return the rules of training without one of them, to see what it gives."""
    return tuple(fusion for fusion in FUSIONS if fusion.name != name)


def ends_in_a_loss(groups: list[Group]) -> bool:
    """Return whether the last group adds to the loss by kernels, as a plan of training must."""
    last = groups[-1]
    return last.nodes[-1].equation.name == "cross_entropy" and last.forward is not reference.forward


def _forward_only(graph_draft: Any, group: Group) -> None:
    raise AssertionError(f"{group.rule} has no backward calls")


FILLING = (
    Fusion(
        "attention", "merge_heads", key_value_cache.match, key_value_cache.fill, _forward_only,
        "as in training, and the prompt's keys and values go into the cache",
    ),
    *(f for f in FUSIONS if f.last != "merge_heads"),
)  # fmt: skip

_BY_PARTS = "the bias, the gate and the stream are added while the row is in the first cache"
DECODING = (
    Fusion(
        "attention", "merge_heads", key_value_cache.match, key_value_cache.decode, _forward_only,
        "the newest key and value are stored and used in the same pass; only positions that exist are visited",
    ),
    Fusion("linear + residual", "residual", linear.match_residual, row_product.product, _forward_only, _BY_PARTS),
    Fusion("linear + gelu", "gelu", gelu.match, row_product.product, _forward_only, _BY_PARTS),
    Fusion("linear + relu", "relu", relu.match, row_product.product, _forward_only, _BY_PARTS),
    Fusion(
        "embeddings", "add_positional", embedding.match, decoding.embeddings, _forward_only,
        "the position is read from the arena, so that one plan serves all positions",
    ),
    Fusion("layer_norm", "layer_norm", layer_norm.match, decoding.normalised, _forward_only, ""),
    Fusion("linear", "linear", linear.match, row_product.product, _forward_only, ""),
)  # fmt: skip


def groups_of(graph: Graph, fusions: tuple[Fusion, ...]) -> list[Group]:
    """Split the graph into groups, in the order in which they run forward."""
    groups: list[Group] = []
    taken: set[int] = set()
    for node in reversed(graph.nodes):
        if id(node) not in taken:
            group = _group_at(node, graph, fusions)
            taken |= {id(n) for n in group.nodes}
            groups.append(group)
    return groups[::-1]


def _group_at(node: Any, graph: Graph, fusions: tuple[Fusion, ...]) -> Group:
    for fusion in fusions:
        if fusion.last == node.equation.name:
            nodes = fusion.match(node, graph)
            if nodes:
                return Group(fusion.name, nodes, fusion.forward, fusion.backward)
    return Group("reference", (node,), reference.forward, reference.backward)
