"""KV cache: the keys and values of each stream's positions so far, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.engine import Tensor
from byhand.engine.arrays import namespace

Kept = tuple[Tensor, Tensor]  # keys and values of one block, each (B, K, S, D)


@dataclass(frozen=True)
class KVCache:
    """Keys and values by block. Position p of a stream is at place p mod S; `TinyGPT.decode` returns the next cache.

    blocks  keys and values (B, K, S, D) of each block
    length  each stream's number of positions: integers (B,)
    """

    blocks: tuple[Kept, ...]
    length: Any

    @property
    def places(self) -> int:
        """S, its capacity in positions."""
        return self.blocks[0][0].shape[2]

    def grown_to(self, places: int) -> KVCache:
        """Return the cache padded to at least `places` places; attention masks empty ones."""
        more = places - self.places
        if more <= 0:
            return self
        return KVCache(tuple((_longer(k, more), _longer(v, more)) for k, v in self.blocks), self.length)


def _longer(kept: Tensor, more: int) -> Tensor:
    xp, (b, heads, _, width) = namespace(kept.data), kept.shape
    return Tensor(xp.concat([kept.data, xp.zeros((b, heads, more, width), dtype=kept.dtype)], axis=2))
