"""Generated numbers of the key-value cache, all from the model of the lesson kv-cache: rows, logits, work, memory."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from byhand.book.lessons.examples import kv_cache
from byhand.book.pages.blocks.family import PUBLISHED, TOTAL
from byhand.book.pages.blocks.markdown import Rows, block, bmatrix, decimals, display_lines, table_block
from byhand.book.pictures.passes import TOKENS, cached_passes, paper_model
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.equations.attention_scores import attention_scores
from byhand.tracing.trace import Trace


@cache
def passes() -> tuple[tuple[Trace, Trace], ...]:
    """Return for each length of the example the pass over all tokens, and that of the last token with a cache."""
    model = paper_model()
    whole = [Trace.of(lambda n=n: model.forward_logits([TOKENS[:n]])) for n in range(1, len(TOKENS) + 1)]
    return tuple(zip(whole, cached_passes(), strict=True))


@block
def cache_given(page: Path, lang: str) -> str:
    """The inputs of attention: the normalised rows of all tokens, and the first head's queries, keys and values."""
    whole, _ = passes()[-1]
    names = {"H": "ln_1", "Q": "attn.q", "K": "attn.k", "V": "attn.v"}
    return display_lines([f"{letter} = {_matrix(_first_head(whole, name))}" for letter, name in names.items()])


@block
def cache_steps(page: Path, lang: str) -> str:
    """The first head, token by token: the new query, all keys and values so far, its scores, weights and result."""
    keys, held, parts = [], [], []
    for t, (token, trace) in enumerate(zip(TOKENS, cached_passes(), strict=True)):
        q, k, v, s, p, y = (
            _first_head(trace, f"attn.{name}") for name in ("q", "k", "v", "scores", "weights", "mixed")
        )
        keys.append(k[0])
        held.append(v[0])
        words = Words(
            f"**Position {t}, token {token}.** New: one query, one key, one value. "
            f"Read from the cache: {_count(t, 'key')} and {_count(t, 'value')}.",
            f"**位置 {t}，词元 {token}**。新计算：一个查询、一个键、一个值。从缓存读取：{t} 个键，{t} 个值。",
        )
        lines = [
            rf"q_{t} = {_matrix(q)}",
            rf"K = {_matrix(keys)}",
            rf"V = {_matrix(held)}",
            rf"S_{t} = q_{t} K^{{\top}} / \sqrt{{{q.shape[-1]}}} = {_matrix(s)}",
            rf"P_{t} = \mathrm{{softmax}}(S_{t}) = {_matrix(p)}",
            rf"Y_{t} = P_{t} V = {_matrix(y)}",
        ]
        parts.append(f"{words.said(lang)}\n\n{display_lines(lines)}")
    return "\n\n".join(parts)


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def _first_head(trace: Trace, name: str) -> np.ndarray:
    """Return an array of the block for the only sequence, and for its first head if it has heads."""
    found = trace.tensor(f"blocks.0.{name}").data
    return found[0, 0] if found.ndim == 4 else found[0]


def _matrix(rows: Any) -> str:
    return bmatrix(map(decimals, row) for row in rows)


@table_block(
    "Step|Tokens so far|Rows without|Scores without|Rows with|Scores with",
    "步|已有词元|无缓存：行|无缓存：分数|有缓存：行|有缓存：分数",
)
def cache_rows() -> Rows:
    """Three tokens decoded without and with a cache: rows projected and scores computed at each step, as counted."""
    counts = [(*work(whole), *work(cached)) for whole, cached in passes()]
    for n, count in enumerate(counts, 1):
        yield n, TOKENS[:n], *count
    yield TOTAL, "", *map(sum, zip(*counts, strict=True))


def work(trace: Trace) -> tuple[int, int]:
    """Return how many query rows and how many scores attention computes."""
    shapes = [a.results[0].shape for a in trace.applications if a.equation is attention_scores]
    return sum(b * t for b, _, t, _ in shapes), sum(map(math.prod, shapes))


_LOGITS = "|".join(f"z[{v}]" for v in range(paper_model().config.vocab_size))


@table_block(f"Step|Cache|{_LOGITS}", f"步|缓存|{_LOGITS}")
def cache_logits() -> Rows:
    """The logits after each token of the example, without a cache and with one."""
    for n, (whole, cached) in enumerate(passes(), 1):
        for words, trace in ((Words("without", "无"), whole), (Words("with", "有"), cached)):
            yield n, words, *map(decimals, trace.result.data[0, -1])


@table_block("Model|2 L T C|Numbers|Bytes in float32", "模型|2 L T C|个数|float32 下的字节数")
def cache_memory() -> Rows:
    """The numbers and the bytes that a full cache holds, for three models."""
    for name, c in (
        (Words("this example", "本例"), kv_cache.CONFIG),
        (Words("default model", "默认模型"), ModelConfig()),
        ("GPT-2", PUBLISHED),
    ):
        count = 2 * c.n_layers * c.seq_len * c.d_model
        yield name, f"2 × {c.n_layers} × {c.seq_len} × {c.d_model}", f"{count:,}", f"{4 * count:,}"
