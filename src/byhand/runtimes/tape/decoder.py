"""Generation by the tape: prefill, then decode with a KV cache, equation by equation.

The context of the next token is the last seq_len tokens, at positions from 0, as the seed documents define it. While
the text fits the window, keys and values of earlier positions are kept and each token costs one row. Past the window
every position moves down by one with each token, so nothing kept is valid any more and the window is computed anew:
the same text as without a cache, at the same cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from byhand.engine import Tensor, no_grad
from byhand.errors import DataError
from byhand.runtimes.bfloat16 import rounded
from byhand.runtimes.protocol import Request
from byhand.runtimes.sampling import Sampling, draw


class KVCache:
    """Keys and values of the positions so far: for each layer (B, H, S, D), allocated once for seq_len positions."""

    def __init__(self, model: Any, batch_size: int) -> None:
        self._store = [
            np.zeros((2, batch_size, heads, model.config.seq_len, width), model.dtype)
            for heads, width in model.cache_shapes()
        ]
        self.length = 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values (B, H, T, D) behind the others; return all of them (B, H, S, D)."""
        if k.requires_grad:
            raise DataError(
                "a KV cache passes no gradient back. Compute inside `with no_grad():`, or without a cache."
            )
        end = self.length + k.shape[2]
        keys, values = self._store[layer]
        keys[:, :, self.length : end] = k.data
        values[:, :, self.length : end] = v.data
        return Tensor(keys[:, :, :end]), Tensor(values[:, :, :end])

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
        model = _rounded(self._model) if self._request.weights == "bfloat16" else self._model
        streams, rng = [list(prompt) for prompt in prompts], np.random.default_rng(sampling.seed)
        for logits in _logits(model, streams, count, self._request.cache):
            drawn = [draw(row, sampling, rng, allowed) for row in logits]
            for tokens, token in zip(streams, drawn, strict=True):
                tokens.append(token)
            self.made_by[1] += 1
            yield np.array([drawn])


def _rounded(model: Any) -> Any:
    """Return the model with every matrix and table rounded to bfloat16, in the model's own type."""
    arrays = {n: rounded(p.data).astype(p.dtype) if p.ndim > 1 else p.data for n, p in model.parameters().items()}
    return type(model)(model.config, arrays=arrays)


def next_logits(model: Any, tokens: Any, count: int, use_cache: bool = True) -> Iterator[np.ndarray]:
    """Yield `count` times the logits (V,) of what comes after `tokens`, which grows between two of them."""
    yield from (logits[0] for logits in _logits(model, [tokens], count, use_cache))


def _logits(model: Any, streams: Sequence[list[int]], count: int, use_cache: bool) -> Iterator[np.ndarray]:
    """Yield `count` times the logits (streams, V) of what comes after each stream."""
    window = model.config.seq_len
    cache = KVCache(model, len(streams)) if use_cache and model.config.causal else None
    for _ in range(count):
        with no_grad(), np.errstate(all="ignore"):  # `draw` refuses what is not finite
            if cache is not None and len(streams[0]) <= window:
                logits = model.forward_logits([tokens[cache.length :] for tokens in streams], cache)
            else:
                logits = model.forward_logits([tokens[-window:] for tokens in streams])
        yield logits.data[:, -1]
