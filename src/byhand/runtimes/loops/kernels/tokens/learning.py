"""Kernel of training: repeatedly makes the commonest pair a token.

Among equally common pairs the smaller left id comes first, then the smaller right id. Each pair has a list of the
words that contained it when it was first counted. Counts are exact; a heap orders the pairs, and an outdated count
in it is corrected when its pair reaches the top.
"""

from __future__ import annotations

from byhand.runtimes.loops.kernels.tokens.tables import pair_slot
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import ints_in, longs_in

ENDED, PAUSED, PAIRS_FULL, LISTS_FULL = 0, 1, 2, 3  # why it returned


@kernel
def learn_merges(tables):
    """Merge until all merges are made, no pair is left, an array is full, or the budget of symbols to read runs out.

    Tables: state; of words: symbols, starts, lengths, counts; of pairs: keys, slots, counts, first place in a list,
    heap; of lists: words, next place; the merges (left << 32 | right). The state is: merges made, merges to make, the
    first id, pairs, size of the heap, places used in lists, first free place (-1: none), 1 if the words are listed,
    why it returned, required capacity, budget of symbols to read.
    """
    state = longs_in(tables, 0)
    symbols, starts = ints_in(tables, 1), longs_in(tables, 2)
    lengths, weights = ints_in(tables, 3), longs_in(tables, 4)
    keys, slots = longs_in(tables, 5), ints_in(tables, 6)
    counts, heads = longs_in(tables, 7), ints_in(tables, 8)
    heap = longs_in(tables, 9)
    listed, nexts = ints_in(tables, 10), ints_in(tables, 11)
    merges = longs_in(tables, 12)
    if state[7] == 0:
        for w in range(lengths.shape[0]):
            for k in range(starts[w], starts[w] + lengths[w] - 1):
                _add(state, symbols[k], symbols[k + 1], weights[w], w, keys, slots, counts, heads, listed, nexts)
        for pair in range(state[3]):
            _push(heap, keys, counts, state, pair)
        state[7] = 1
    work = state[10]
    state[8] = ENDED
    while state[0] < state[1] and state[4] > 0:
        pair = heap[0] & 0xFFFFFFFF
        if counts[pair] != heap[1]:
            if counts[pair] > 0:
                heap[1] = counts[pair]
                _sift_down(heap, state[4], keys)
            else:
                _pop(heap, state, keys)
            continue
        if work < 0:
            state[8] = PAUSED
            break
        read, place = 0, heads[pair]
        while place >= 0:
            read += lengths[listed[place]]
            place = nexts[place]
        state[9] = min(read, 2 * (state[2] + 1))
        if state[3] + state[9] > keys.shape[0]:
            state[8] = PAIRS_FULL
            break
        state[9] = read
        if state[5] + read > listed.shape[0]:
            state[8] = LISTS_FULL
            break
        work -= read
        _pop(heap, state, keys)
        left, right, new, before = keys[pair] >> 32, keys[pair] & 0xFFFFFFFF, state[2], state[3]
        place, heads[pair] = heads[pair], -1
        while place >= 0:
            w = listed[place]
            lengths[w] = _join(
                state, left, right, new, symbols, starts[w], lengths[w], weights[w], w, keys, slots, counts, heads,
                listed, nexts,
            )  # fmt: skip
            following = nexts[place]
            nexts[place], state[6] = state[6], place
            place = following
        counts[pair] = 0
        for p in range(before, state[3]):
            if counts[p] > 0:
                _push(heap, keys, counts, state, p)
        merges[state[0]] = keys[pair]
        state[0] += 1
        state[2] += 1


@compiled
def _join(state, left, right, new, symbols, start, length, weight, w, keys, slots, counts, heads, listed, nexts):
    """Join a pair in a word, from the left; return the word's new number of symbols."""
    kept, k = start, start
    end = start + length
    while k < end:
        if k + 1 < end and symbols[k] == left and symbols[k + 1] == right:
            if kept > start:
                before = symbols[kept - 1]
                counts[slots[pair_slot(int(before) << 32 | left, keys, slots)] - 1] -= weight
                _add(state, before, new, weight, w, keys, slots, counts, heads, listed, nexts)
            if k + 2 < end:
                behind = symbols[k + 2]
                counts[slots[pair_slot(right << 32 | int(behind), keys, slots)] - 1] -= weight
                _add(state, new, behind, weight, w, keys, slots, counts, heads, listed, nexts)
            symbols[kept] = new
            k += 2
        else:
            symbols[kept] = symbols[k]
            k += 1
        kept += 1
    return kept - start


@compiled
def _add(state, left, right, weight, w, keys, slots, counts, heads, listed, nexts):
    """Count a pair of a word, and list the word with it."""
    key = int(left) << 32 | int(right)
    slot = pair_slot(key, keys, slots)
    if slots[slot] == 0:
        pair = state[3]
        keys[pair], counts[pair], heads[pair] = key, 0, -1
        state[3] += 1
        slots[slot] = state[3]
    pair = slots[slot] - 1
    counts[pair] += weight
    if heads[pair] >= 0 and listed[heads[pair]] == w:
        return
    place = state[6]
    if place >= 0:
        state[6] = nexts[place]
    else:
        place = state[5]
        state[5] += 1
    listed[place], nexts[place], heads[pair] = w, heads[pair], place


@compiled
def _first(heap, a, keys, count, pair):
    """Return whether entry a of the heap comes before a pair with this count."""
    if heap[2 * a + 1] != count:
        return heap[2 * a + 1] > count
    return keys[heap[2 * a]] < keys[pair]


@compiled
def _push(heap, keys, counts, state, pair):
    """Push a pair onto the heap: its number and its count."""
    at = state[4]
    state[4] += 1
    while at > 0 and not _first(heap, (at - 1) >> 1, keys, counts[pair], pair):
        up = (at - 1) >> 1
        heap[2 * at], heap[2 * at + 1] = heap[2 * up], heap[2 * up + 1]
        at = up
    heap[2 * at], heap[2 * at + 1] = pair, counts[pair]


@compiled
def _pop(heap, state, keys):
    """Remove the first pair of the heap."""
    state[4] -= 1
    heap[0], heap[1] = heap[2 * state[4]], heap[2 * state[4] + 1]
    _sift_down(heap, state[4], keys)


@compiled
def _sift_down(heap, size, keys):
    """Move the first entry down to its place."""
    pair, count, at = heap[0], heap[1], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _first(heap, child + 1, keys, heap[2 * child + 1], heap[2 * child]):
            child += 1
        if not _first(heap, child, keys, count, pair):
            break
        heap[2 * at], heap[2 * at + 1] = heap[2 * child], heap[2 * child + 1]
        at = child
    heap[2 * at], heap[2 * at + 1] = pair, count
