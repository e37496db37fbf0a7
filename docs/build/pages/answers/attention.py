"""Answers about attention: what a cache saves, rotary pairs, offsets of its numbers in memory."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from byhand.book.lessons.examples.attention_index import PLACE, queries_and_keys
from byhand.book.lessons.examples.memory_layout import offset
from byhand.book.numbers import closed_form
from byhand.book.numbers.arithmetic import expression
from byhand.book.pictures.passes import TOKENS, cached_passes, paper_model
from byhand.config import ModelConfig
from byhand.equations.attention_scores import attention_scores
from byhand.equations.rotary import SCALINGS, frequencies, pair_of, slowed
from byhand.equations.split_qkv import split_qkv
from byhand.layers.attention import SelfAttention
from byhand.tracing.trace import Trace
from pages.answers.registry import ANSWERS, answer

ANSWERS |= {"tokens": TOKENS, "frequencies": frequencies}


@answer
@cache
def cache_passes() -> list[tuple[Trace, Trace]]:
    """Return for each length of the example the pass over all tokens, and that of the last token with a cache."""
    model = paper_model()
    whole = [Trace.of(lambda n=n: model.forward_logits([TOKENS[:n]])) for n in range(1, len(TOKENS) + 1)]
    return list(zip(whole, cached_passes(), strict=True))


@answer
def first_head(trace: Trace, name: str) -> np.ndarray:
    """Return an array of the block for the only sequence, and for its first head if it has heads."""
    found = trace.tensor(f"blocks.0.{name}").data
    return found[0, 0] if found.ndim == 4 else found[0]


@answer
def cache_work() -> np.ndarray:
    """Return for each step the query rows and the scores that attention computes: without a cache, and with one."""
    return np.array([(*work(whole), *work(cached)) for whole, cached in cache_passes()])


def work(trace: Trace) -> tuple[int, int]:
    """Return how many query rows and how many scores attention computes."""
    shapes = [a.results[0].shape for a in trace.applications if a.equation is attention_scores]
    return sum(b * t for b, _, t, _ in shapes), sum(map(math.prod, shapes))


@answer
def cache_size(config: ModelConfig) -> tuple[int, int]:
    """Return the columns of W_qkv, and how many numbers the cache keeps for each position."""
    attention = SelfAttention(config, config.layer_kinds[0])
    kept = 2 * math.prod(attention.cache_shape) * config.n_layers
    return attention.parameters()["w_qkv"].shape[1], kept


@answer
def columns_of_pair(p: int, width: int, pairing: str) -> list[int]:
    """Return the columns of a head that rotary embedding turns together."""
    return [c for c in range(width) if (pair_of(c, width, pairing) or (None,))[0] == p]


@answer
def slowed_pairs(width: int, length: int, factor: float) -> list[tuple[float, ...]]:
    """Return by how much each way of scaling slows each pair of a head, for `factor` times `length` positions."""
    ways = [ModelConfig(positions="rotary", rope_scaling=kind, rope_factor=factor, rope_original_len=length)
            for kind in SCALINGS]  # fmt: skip
    return list(zip(*(slowed(way.rope_base, width, way.rotary_scaling) for way in ways), strict=True))


@answer
def offset_in(place: tuple[int, ...], shape: tuple[int, ...]) -> tuple[str, int]:
    """Return the offset of an array's element in flat memory: its arithmetic, and its value."""
    term = offset(place, shape)
    return expression(term), int(term.value)


@answer
def queries_and_keys_in_memory() -> list[list[int]]:
    """Return the queries and the keys of the lesson attention-index in flat memory."""
    return [x.data.astype(int).ravel().tolist() for x in queries_and_keys(closed_form.array)]


@answer
def packed_offsets() -> list[tuple[str, int, list[int], int, float]]:
    """Return the numbers of the lesson's score: element and offset by head, those side by side, value."""
    b, h, t, s = PLACE
    q, k = (x.data for x in queries_and_keys(closed_form.array))
    _, heads, _, width = q.shape
    packed = split_qkv.vjp((), (q, k, np.zeros_like(q)), n_heads=heads)[0]  # side by side again
    rows = []
    for name, array, position, part in (("q", q, t, 0), ("k", k, s, 1)):
        for d in range(width):
            by_head, side = (b, h, position, d), (b, position, (part * heads + h) * width + d)
            flat = offset_in(side, packed.shape)[1]
            element = f"{name}[{','.join(map(str, by_head))}]"
            rows.append((element, offset_in(by_head, array.shape)[1], list(side), flat, packed.ravel()[flat]))
    return rows
