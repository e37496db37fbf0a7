"""Generation by the tape: prefill, then decode with a KV cache, equation by equation.

With a table of positions the context of the next token is the last seq_len tokens, at positions from 0, as the seed
documents define it. While the text fits the window, keys and values of earlier positions are kept and each token
costs one row. Past the window every position moves down by one with each token, so the cache is no longer valid and
the window is recomputed: the same text as without a cache, at the same cost.

Without a table the window slides: the text begins with the last seq_len tokens of the prompt, and from there each
position attends to the last seq_len. The cache stays valid, so a token costs one row however long the text is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from byhand.engine import Tensor, no_grad
from byhand.errors import DataError
from byhand.formats.registry import FORMATS, Format
from byhand.runtimes.protocol import Request
from byhand.runtimes.sampling import Sampling, draw


class KVCache:
    """Keys and values for each layer, (B, K, S, D): of all positions, or of the last ones if the window slides."""

    def __init__(self, model: Any, batch_size: int) -> None:
        config = model.config
        self._room = config.visible if config.slides else config.seq_len
        self._store = [
            np.zeros((2, batch_size, heads, self._room, width), model.dtype) for heads, width in model.cache_shapes()
        ]
        self.length = 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append new keys and values (B, K, T, D); return all those that the new positions attend to."""
        if k.requires_grad:
            raise DataError(
                "a KV cache passes no gradient back. Compute inside `with no_grad():`, or without a cache."
            )
        new = np.stack([k.data, v.data])
        kept, store = min(self.length, self._room), self._store[layer]
        if kept + new.shape[3] <= self._room:
            store[:, :, :, kept : kept + new.shape[3]] = new
            keys, values = store[:, :, :, : kept + new.shape[3]]
        else:  # the first new position attends to the last room - 1 before it, and the oldest leaves
            both = np.concatenate([store[:, :, :, max(0, kept - self._room + 1) : kept], new], axis=3)
            store[...] = both[:, :, :, -self._room :]
            keys, values = both
        return Tensor(keys), Tensor(values)

    def advance(self, n: int) -> None:
        """Count n more positions."""
        self.length += n


class TapeDecoder:
    """Continues streams with NumPy; see `Decoder`."""

    def __init__(self, model: Any, request: Request) -> None:
        self._model = model
        self._request = request
        self.made_by: Counter[int] = Counter()

    def generate(
        self, prompts: Sequence[Sequence[int]], count: int, sampling: Sampling, allowed: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Yield one id of each stream at a time."""
        model = _rounded(self._model, FORMATS[self._request.weights])
        streams, rng = [list(prompt) for prompt in prompts], np.random.default_rng(sampling.seed)
        for logits in _logits(model, streams, count, self._request.cache):
            drawn = [draw(row, sampling, rng, allowed) for row in logits]
            for tokens, token in zip(streams, drawn, strict=True):
                tokens.append(token)
            self.made_by[1] += 1
            yield np.array([drawn])


def _rounded(model: Any, kind: Format) -> Any:
    """Return the model with every matrix and table rounded to a format, in the model's own type."""
    if kind.native:
        return model
    arrays = {
        n: kind.rounded(p.data).astype(p.dtype) if p.ndim > 1 else p.data for n, p in model.parameters().items()
    }
    return type(model)(model.config, arrays=arrays)


def next_logits(model: Any, tokens: Any, count: int) -> Iterator[np.ndarray]:
    """Yield `count` times the logits (V,) after `tokens`, a list that the caller extends between two of them."""
    yield from (logits[0] for logits in _logits(model, [tokens], count, use_cache=True))


def _logits(model: Any, streams: Sequence[list[int]], count: int, use_cache: bool) -> Iterator[np.ndarray]:
    """Yield `count` times the logits (streams, V) after each stream."""
    config = model.config
    window = config.seq_len
    cache = KVCache(model, len(streams)) if use_cache and config.causal else None
    first = max(0, len(streams[0]) - window) if config.slides and config.causal else 0
    for _ in range(count):
        with no_grad(), np.errstate(all="ignore"):  # `draw` refuses logits that are not finite
            if cache is not None and (config.slides or len(streams[0]) <= window):
                logits = model.forward_logits([tokens[first + cache.length :] for tokens in streams], cache)
            else:
                begin = first if config.slides and config.causal else -window
                logits = model.forward_logits([tokens[begin:] for tokens in streams])
        yield logits.data[:, -1]
