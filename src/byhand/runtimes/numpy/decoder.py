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
        super().__init__(request.streams)
        self._given, self._model, self._request = model, model, request
        self._caches = request.cache and model.config.causal
        self._store: KVCache | None = None  # of all slots
        self._how = InPlace()
        self._first = [0] * self.slots  # index of each stream's first context token, for sliding windows

    def admit(self, slot: int, stream: Stream, kept: int = 0) -> None:
        """Begin a stream in a free slot."""
        if self.stale and not any(self.streams):
            self._model, self._how = with_weights(self._given, self._request)
            self.stale = False
        super().admit(slot, stream)
        config = self._model.config
        self._first[slot] = max(0, len(stream.tokens) - config.seq_len) if config.slides and config.causal else 0
        if self._store is not None:
            self._store.length[slot] = kept

    def free(self, slot: int) -> int:
        """Release a slot."""
        super().free(slot)
        return 0 if self._store is None else int(self._store.length[slot])

    def logits(self, running: dict[int, Stream]) -> list[np.ndarray]:
        """Return the logits after each stream; computes one row if the cache holds the others, else all."""
        with np.errstate(all="ignore"):  # `draw` refuses logits that are not finite
            if not self._caches:
                return [self._whole(slot, stream) for slot, stream in running.items()]
            config, found = self._model.config, {}
            store = self._store = self._store or self._model.cache(self.slots, config.cached)
            for slot, stream in running.items():
                length = int(store.length[slot])
                if not length or (length == config.seq_len and not config.slides):
                    found[slot] = self._filled(store, slot, stream.tokens[-config.seq_len :], 0)
                elif more := stream.tokens[self._first[slot] + length : -1]:
                    found[slot] = self._filled(store, slot, [*more, stream.tokens[-1]], length)
            if rows := [slot for slot in running if slot not in found]:
                found |= self._stepped(store, {slot: running[slot] for slot in rows})
        return [found[slot] for slot in running]

    def _whole(self, slot: int, stream: Stream) -> np.ndarray:
        """Return the logits of a stream's context, computed from scratch."""
        config = self._model.config
        begin = self._first[slot] if config.slides and config.causal else -config.seq_len
        with interpreting(self._how):
            return self._model.forward_logits([stream.tokens[begin:]]).data[0, -1]

    def _filled(self, store: KVCache, slot: int, tokens: list[int], start: int) -> np.ndarray:
        """Prefill a slot: compute a stream's context from a position and store its keys and values."""
        rows, end = slice(slot, slot + 1), start + len(tokens)
        blocks = tuple((Tensor(k.data[rows, :, :end]), Tensor(v.data[rows, :, :end])) for k, v in store.blocks)
        cache = KVCache(blocks, np.array([start]))
        with interpreting(self._how):
            logits, made = self._model.decode([tokens], cache if end <= store.places else self._model.cache(1, end))
        if end > store.places:  # a ring keeps the last ones
            for kept, new in zip(store.blocks, made.blocks, strict=True):
                for a, b in zip(kept, new, strict=True):
                    extend(a.data[rows], b.data, np.zeros(1, int))
        store.length[slot] = end
        self.filled += len(tokens)
        return logits.data[0, -1]

    def _stepped(self, store: KVCache, running: dict[int, Stream]) -> dict[int, np.ndarray]:
        """Decode one row for each stream, up to the last slot in use."""
        rows, tokens = max(running) + 1, np.zeros(self.slots, np.int64)
        start = np.zeros(self.slots, np.int64)
        for slot, stream in running.items():
            tokens[slot], start[slot] = stream.tokens[-1], store.length[slot]
        places = min(int(start.max()) + 1, store.places)
        view = tuple((Tensor(k.data[:rows, :, :places]), Tensor(v.data[:rows, :, :places])) for k, v in store.blocks)
        others = [slot for slot in range(rows) if slot not in running]
        kept = [[a.data[others, :, 0].copy() for a in pair] for pair in view]  # their rows write into place 0
        with interpreting(self._how):
            logits, _ = self._model.decode(tokens[:rows, None], KVCache(view, start[:rows]))
        for pair, old in zip(view, kept, strict=True):
            for a, b in zip(pair, old, strict=True):
                a.data[others, :, 0] = b
        for slot in running:
            store.length[slot] += 1
        return {slot: logits.data[slot, -1] for slot in running}


def next_logits(model: Any, tokens: Any, count: int, weights: Weights = "float32") -> Iterator[np.ndarray]:
    """Yield the logits (V,) after `tokens`, `count` times; the caller extends the list in between."""
    decoder = NumpyDecoder(model, Request("generate", model.config, weights=weights))
    stream = Stream([0], count + 1)
    stream.tokens = tokens
    decoder.admit(0, stream)
    for _ in range(count):
        yield decoder.logits({0: stream})[0]
