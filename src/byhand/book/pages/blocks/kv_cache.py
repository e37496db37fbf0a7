"""Generated numbers of the key-value cache, all from the model of the lesson kv-cache: rows, logits, work, memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from byhand.book.lessons.examples import kv_cache
from byhand.book.lessons.examples.paper_gpt import BYTES, model_of
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.choices import PUBLISHED
from byhand.book.pages.blocks.markdown import block, bmatrix, decimals, display_lines, table
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine import no_grad
from byhand.equations.attention_scores import attention_scores
from byhand.model import TinyGPT
from byhand.runtimes.tape.decoder import KVCache
from byhand.tracing.trace import Trace

TOKENS: list[int] = list(BYTES[:-1])


def lesson_model() -> TinyGPT:
    """Return the lesson's model, without gradients: a cache passes none back."""
    model = model_of(kv_cache.CONFIG, {n: array(w) for n, w in kv_cache.WEIGHTS.items()})
    for parameter in model.parameters().values():
        parameter.requires_grad = False
    return model


@block
def cache_given(page: Path, lang: str) -> str:
    """What attention reads: the normalised rows of all tokens, and the first head's queries, keys and values."""
    model = lesson_model()
    values = Trace.of(lambda: model.forward_logits([TOKENS])).values
    names = {"H": "ln_1", "Q": "attn.q", "K": "attn.k", "V": "attn.v"}
    arrays = {symbol: _first_head(values[f"blocks.0.{name}"]) for symbol, name in names.items()}
    return display_lines([f"{symbol} = {_matrix(found)}" for symbol, found in arrays.items()])


@block
def cache_steps(page: Path, lang: str) -> str:
    """The first head, token by token: the new query, all keys and values so far, its scores, weights and result."""
    model = lesson_model()
    cache, keys, held, parts = KVCache(model, 1), [], [], []
    for t, token in enumerate(TOKENS):
        values = Trace.of(lambda token=token: model.forward_logits([[token]], cache)).values
        q, k, v, s, p, y = (
            _first_head(values[f"blocks.0.attn.{n}"]) for n in ("q", "k", "v", "scores", "weights", "mixed")
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


def _first_head(found: np.ndarray) -> np.ndarray:
    """Return the rows of the only sequence, of its first head where there are heads."""
    return found[0, 0] if found.ndim == 4 else found[0]


def _matrix(rows: Any) -> str:
    return bmatrix(map(decimals, row) for row in rows)


@block
def cache_rows(page: Path, lang: str) -> str:
    """Three tokens decoded without and with a cache: rows projected and scores computed at each step, as counted."""
    model = lesson_model()
    cache = KVCache(model, 1)
    rows, totals = [], [0, 0, 0, 0]
    for n in range(1, len(TOKENS) + 1):
        counts = [*work(model, TOKENS[:n], None), *work(model, TOKENS[n - 1 : n], cache)]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        rows.append((n, TOKENS[:n], *counts))
    rows.append((Words("total", "合计"), "", *totals))
    head = Words(
        "Step|Tokens so far|Rows without|Scores without|Rows with|Scores with",
        "步|已有词元|无缓存：行|无缓存：分数|有缓存：行|有缓存：分数",
    )
    return table(head, rows, lang)


def work(model: TinyGPT, tokens: list[int], cache: KVCache | None) -> tuple[int, int]:
    """Return how many query rows and how many scores attention computes."""
    applied = Trace.of(lambda: model.forward_logits([tokens], cache)).applications
    shapes = [a.results[0].shape for a in applied if a.equation is attention_scores]
    return sum(b * t for b, _, t, _ in shapes), sum(map(math.prod, shapes))


@block
def cache_logits(page: Path, lang: str) -> str:
    """The logits after each token of the example, without a cache and with one."""
    rows = []
    for n, whole, cached in cached_logits():
        rows.append((n, Words("without", "无"), *map(decimals, whole)))
        rows.append((n, Words("with", "有"), *map(decimals, cached)))
    return table(Words("Step|Cache|z[0]|z[1]|z[2]|z[3]", "步|缓存|z[0]|z[1]|z[2]|z[3]"), rows, lang)


def cached_logits() -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return for each length of the example its last logits, computed as a whole and token by token."""
    model = lesson_model()
    cache = KVCache(model, 1)
    with no_grad():
        return [
            (
                n,
                model.forward_logits([TOKENS[:n]]).data[0, -1],
                model.forward_logits([TOKENS[n - 1 : n]], cache).data[0, -1],
            )
            for n in range(1, len(TOKENS) + 1)
        ]


@block
def cache_memory(page: Path, lang: str) -> str:
    """The numbers and the bytes that a full cache holds, for three models."""
    models = {
        Words("this example", "本例"): kv_cache.CONFIG,
        Words("default model", "默认模型"): ModelConfig(),
        "GPT-2": PUBLISHED,
    }
    rows = []
    for name, c in models.items():
        count = 2 * c.n_layers * c.seq_len * c.d_model
        rows.append((name, f"2 × {c.n_layers} × {c.seq_len} × {c.d_model}", f"{count:,}", f"{4 * count:,}"))
    head = Words("Model|2 L T C|Numbers|Bytes in float32", "模型|2 L T C|个数|float32 下的字节数")
    return table(head, rows, lang)
