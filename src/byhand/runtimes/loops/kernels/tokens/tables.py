"""Hash tables of words and of pairs, in arrays that the caller enlarges when they are full.

A table of words stores their bytes contiguously: word e is `letters[starts[e] : starts[e + 1]]`. A slot holds
e + 1, or 0; the number of slots is a power of two.
"""

from __future__ import annotations

from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import bytes_in, ints_in, longs_in

SPREAD = -7046029254386353131  # 2^64 over the golden ratio: Fibonacci hashing


@compiled
def word_slot(text, i, end, letters, starts, slots):
    """Return the slot of the word text[i:end], or the empty slot for it."""
    spread = end - i
    for k in range(i, end):
        spread = (spread ^ int(text[k])) * SPREAD
        spread ^= (spread >> 32) & 0xFFFFFFFF
    most = slots.shape[0] - 1
    slot = spread & most
    while slots[slot] != 0:
        begin = starts[slots[slot] - 1]
        if starts[slots[slot]] - begin == end - i:
            k = 0
            while k < end - i and letters[begin + k] == text[i + k]:
                k += 1
            if k == end - i:
                break
        slot = (slot + 1) & most
    return slot


@compiled
def add_word(text, i, end, letters, starts, slots, slot, entry):
    """Put the word text[i:end] into its slot as entry `entry`, the next one."""
    begin = starts[entry]
    for k in range(end - i):
        letters[begin + k] = text[i + k]
    starts[entry + 1] = begin + end - i
    slots[slot] = entry + 1


@kernel
def spread_words(tables):
    """Fill the empty slots with the words 0 .. count - 1. Tables: counts (count), letters, starts, slots."""
    count, letters = longs_in(tables, 0)[0], bytes_in(tables, 1)
    starts, slots = longs_in(tables, 2), ints_in(tables, 3)
    for entry in range(count):
        slots[word_slot(letters, starts[entry], starts[entry + 1], letters, starts, slots)] = entry + 1


@compiled
def pair_slot(key, keys, slots):
    """Return the slot of a pair of ids, left << 32 | right, or the empty slot for it."""
    most = slots.shape[0] - 1
    spread = key * SPREAD
    slot = (spread >> 24) & most
    while slots[slot] != 0 and keys[slots[slot] - 1] != key:
        slot = (slot + 1) & most
    return slot


@kernel
def spread_pairs(tables):
    """Fill the empty slots with the pairs 0 .. count - 1. Tables: counts (count), keys, slots."""
    count = longs_in(tables, 0)[0]
    keys, slots = longs_in(tables, 1), ints_in(tables, 2)
    for pair in range(count):
        slots[pair_slot(keys[pair], keys, slots)] = pair + 1
