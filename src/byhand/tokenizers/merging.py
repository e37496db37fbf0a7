"""Merging: adjacent pairs of a word's ids become one id, least rank first, leftmost among equals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise

from byhand.errors import DataError
from byhand.tokenizers.symbols import LARGEST

WORK = 1 << 26  # most characters searched for the pairs of a vocabulary without merges
Pairs = dict[tuple[int, int], tuple[int, int]]  # pair of ids -> rank, merged id


def merged(ids: list[int], pairs: Pairs, below: int = LARGEST) -> list[int]:
    """Return a word's ids merged until no rank is below `below`; overwrites the list."""
    n = len(ids)
    before, behind = list(range(-1, n - 1)), list(range(1, n + 1))
    heap = [(pairs[pair][0], k) for k, pair in enumerate(pairwise(ids)) if pair in pairs]
    heapify(heap)
    while heap and heap[0][0] < below:
        rank, k = heappop(heap)
        if (j := behind[k]) == n or (found := pairs.get((ids[k], ids[j]), (-1, -1)))[0] != rank:
            continue  # a stale entry of the heap: one of the two has been merged
        ids[k], ids[j] = found[1], -1
        behind[k] = behind[j]
        if behind[k] < n:
            before[behind[k]] = k
        for i in (before[k], k):
            if i >= 0 and behind[i] < n and (pair := (ids[i], ids[behind[i]])) in pairs:
                heappush(heap, (pairs[pair][0], i))
    return [token for token in ids if token >= 0]


def listed(merges: Iterable[tuple[str, str]], vocabulary: Mapping[str, int]) -> Pairs:
    """Return each pair of ids with its rank and merged id."""
    found: Pairs = {}
    for rank, (left, right) in enumerate(merges):
        for symbol, what in ((left + right, "makes"), (left, "joins"), (right, "joins")):
            if symbol not in vocabulary:
                raise DataError(
                    f"merge {rank + 1} {what} {symbol[:80]!r}, which the vocabulary lacks. Use files of one set."
                )
        pair = vocabulary[left], vocabulary[right]
        if pair in found:
            raise DataError(f"merges {found[pair][0] + 1} and {rank + 1} are the same. Remove one of them.")
        found[pair] = rank, vocabulary[left + right]
    return found


def every_pair(vocabulary: Mapping[str, int], ranks: Mapping[str, int]) -> Pairs:
    """Return the pairs of tokens whose concatenated symbols are a token of these ranks."""
    lengths = sorted({len(symbol) for symbol in vocabulary})
    found: Pairs = {}
    work = 0
    for symbol, rank in ranks.items():
        for k in lengths:
            if k >= len(symbol):
                break
            if (work := work + len(symbol)) > WORK:
                raise DataError(
                    "tokens are so long that their parts cannot be looked up. Use a tokenizer with shorter ones."
                )
            if symbol[:k] in vocabulary and symbol[k:] in vocabulary:
                found[vocabulary[symbol[:k]], vocabulary[symbol[k:]]] = rank, vocabulary[symbol]
    return found
