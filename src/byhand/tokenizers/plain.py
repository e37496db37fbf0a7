"""The definition of byte-pair encoding, in thirty lines: the reference for the fast code.

Training: each word of the text is a sequence of ids, initially its bytes. Count adjacent pairs; replace the most
frequent pair by a new id everywhere; repeat. Ties go to the smaller left id, then to the smaller right id. Encoding:
merge the pair learnt first, leftmost occurrence first, until no pair has a merge.

Source      Sennrich, Haddow & Birch 2016, arXiv:1508.07909; Radford et al. 2019, section 2.2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

Pair = tuple[int, int]


def count_pairs(words: Mapping[tuple[int, ...], int]) -> Counter[Pair]:
    """Return the frequency of each adjacent pair, weighted by the words' counts."""
    counts: Counter[Pair] = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            counts[pair] += count
    return counts


def commonest(counts: Mapping[Pair, int]) -> Pair:
    """Return the pair to merge next: the largest count, then the smallest ids."""
    return min(counts, key=lambda pair: (-counts[pair], pair))


def joined(word: Sequence[int], pair: Pair, new: int) -> tuple[int, ...]:
    """Return a word with a pair merged, from left to right."""
    found: list[int] = []
    for id_ in word:
        if found and (found[-1], id_) == pair:
            found[-1] = new
        else:
            found.append(id_)
    return tuple(found)


def learn(words: Mapping[bytes, int], merges: int) -> list[Pair]:
    """Return the pairs to merge, in order: the k-th becomes the id 256 + k."""
    rows = {tuple(word): count for word, count in words.items()}
    made: list[Pair] = []
    while len(made) < merges and (counts := count_pairs(rows)):
        made.append(pair := commonest(counts))
        rows = {joined(row, pair, 255 + len(made)): count for row, count in rows.items()}
    return made


def encode(word: bytes, merges: Sequence[Pair]) -> list[int]:
    """Return the ids of a word."""
    ids = tuple(word)
    while known := [pair for pair in pairwise(ids) if pair in merges]:
        first = min(known, key=merges.index)
        ids = joined(ids, first, 256 + merges.index(first))
    return list(ids)
