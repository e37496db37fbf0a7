"""Generation with NumPy: prefill, then decode with a KV cache, equation by equation.

With a position table, the next token's context is the last seq_len tokens, numbered from 0, as the seed documents
define it. While the text fits the window, earlier keys and values are cached and each token costs one row. Past the
window each token shifts every position by one, which invalidates the cache; the window is recomputed: the same text
as without a cache, at the same cost.

Without a table the window slides: the text starts with the last seq_len tokens of the prompt, and each position
attends to the last seq_len. The cache stays valid, so a token costs one row at any length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from byhand.engine import Tensor, interpreting
from byhand.formats.names import Weights
from byhand.layers.cache import KVCache
from byhand.runtimes.numpy.interpreters import InPlace, extend, with_weights
from byhand.runtimes.protocol import Request
from byhand.runtimes.streams import LogitsDecoder, Stream


class NumpyDecoder(LogitsDecoder):
    """Continues streams with NumPy; see `Decoder`."""

    def __init__(self, model: Any, request: Request) -> None:
        super().__init__(request.streams, model.config)
        self._given, self._model, self._request = model, model, request
        self._caches = request.cache and model.config.causal
        self._store: KVCache | None = None  # of all slots
        self._how = InPlace()
        self._after: dict[int, np.ndarray] = {}  # by slot: the logits after a prompt that was read
        self._first = [0] * self.slots  # token at which a stream's context begins, where the window slides

    def admit(self, slot: int, stream: Stream, kept: int = 0) -> None:
        """Begin a stream in a free slot."""
        if self.stale and not any(self.streams):
            self._model, self._how = with_weights(self._given, self._request)
            self.stale = False
        super().admit(slot, stream, kept)
        self._after.pop(slot, None)
        config = self._model.config
        self._first[slot] = max(0, len(stream.tokens) - config.seq_len) if config.slides and config.causal else 0
        if self._store is not None:
            self._store.length[slot] = kept

    def free(self, slot: int) -> int:
        """Release a slot."""
        super().free(slot)
        self._after.pop(slot, None)
        return 0 if self._store is None else int(self._store.length[slot])

    def fill(self, slot: int, context: list[int], begin: int, end: int) -> None:
        """Read positions of a slot's context; without a cache, all of them with the last."""
        stream = self.streams[slot]
        assert stream is not None
        last = end == len(context)
        with np.errstate(all="ignore"):
            if self._caches:
                found = self._read(slot, context[begin:end], begin)
            elif last:
                found = self._whole(slot, stream)
            else:
                return
            if stream.unscored:
                stream.score(found)
        if last:
            self._after[slot] = found[-1]

    def logits(self, running: dict[int, Stream]) -> list[np.ndarray]:
        """Return the logits after each stream: of its last row if the cache holds the others, else of all.

        Row by row: a product of several rounds differently, so a text would depend on its companions.
        """
        with np.errstate(all="ignore"):  # `draw` refuses logits that are not finite
            known = self._after
            return [known.pop(i) if i in known else self._next(i, stream) for i, stream in running.items()]

    def _next(self, slot: int, stream: Stream) -> np.ndarray:
        if not self._caches:
            return self._whole(slot, stream)[-1]
        config = self._model.config
        length = int(self._store.length[slot]) if self._store else 0
        if not length or (length == config.seq_len and not config.slides):
            return self._read(slot, stream.tokens[-config.seq_len :], 0)[-1]
        return self._read(slot, stream.tokens[self._first[slot] + length :], length)[-1]

    def _whole(self, slot: int, stream: Stream) -> np.ndarray:
        """Return the logits (T, V) of a stream's context, all of it computed."""
        config = self._model.config
        begin = self._first[slot] if config.slides and config.causal else -config.seq_len
        with interpreting(self._how):
            return self._model.forward_logits([stream.tokens[begin:]]).data[0]

    def _read(self, slot: int, tokens: list[int], start: int) -> np.ndarray:
        """Return the logits (T, V) of tokens from a position on, and store their keys and values."""
        store = self._store = self._store or self._model.cache(self.slots, self._model.config.cached)
        rows, end = slice(slot, slot + 1), start + len(tokens)
        ring = end > store.places and len(tokens) > 1
        places = min(end, store.places)
        blocks = tuple((Tensor(k.data[rows, :, :places]), Tensor(v.data[rows, :, :places])) for k, v in store.blocks)
        cache = self._model.cache(1, end) if ring else KVCache(blocks, np.array([start]))
        with interpreting(self._how):
            logits, made = self._model.decode([tokens], cache)
        if ring:  # it keeps the last ones
            for kept, new in zip(store.blocks, made.blocks, strict=True):
                for a, b in zip(kept, new, strict=True):
                    extend(a.data[rows], b.data, np.zeros(1, int))
        store.length[slot] = end
        self.filled += len(tokens) if len(tokens) > 1 else 0
        return logits.data[0]


def next_logits(model: Any, tokens: Any, count: int, weights: Weights = "float32") -> Iterator[np.ndarray]:
    """Yield the logits (V,) after `tokens`, `count` times; the caller extends the list in between."""
    decoder = NumpyDecoder(model, Request("generate", model.config, weights=weights))
    stream = Stream([0], count + 1)
    stream.tokens = tokens
    decoder.admit(0, stream)
    for _ in range(count):
        yield decoder.logits({0: stream})[0]
