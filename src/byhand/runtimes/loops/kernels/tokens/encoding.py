"""Kernel of encoding: the ids of a text's words; each word is merged once and then cached."""

from __future__ import annotations

from byhand.runtimes.loops.kernels.tokens.counting import LOOKAHEAD
from byhand.runtimes.loops.kernels.tokens.cutting import word_end
from byhand.runtimes.loops.kernels.tokens.tables import add_word, pair_slot, word_slot
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import bytes_in, ints_in, longs_in

ENDED, FULL, TOO_LONG, UNKNOWN = 0, 1, 2, 3  # why it returned: end of text, full cache, long word, byte without id


@kernel
def encode_words(tables):
    """Encode words until the text ends, an array is full, or a byte has no id.

    Tables: state, the block, kinds; the cached words: letters, starts, slots, start of each one's ids, ids; ids of
    bytes (-1: none), keys of pairs, slots of pairs, ranks of pairs, ids of pairs; scratch (int32), heap, and the ids
    (int32, at most one per byte). The state is: position reached, cached words, whether the text ends with the block,
    joins, digits, bytes to leave at the end, ids written, why it returned.
    """
    state = longs_in(tables, 0)
    text, kinds = bytes_in(tables, 1), bytes_in(tables, 2)
    letters, starts = bytes_in(tables, 3), longs_in(tables, 4)
    slots, begins = ints_in(tables, 5), longs_in(tables, 6)
    known, bytes_ids = ints_in(tables, 7), ints_in(tables, 8)
    keys, pairs = longs_in(tables, 9), ints_in(tables, 10)
    ranks, joined = ints_in(tables, 11), ints_in(tables, 12)
    scratch, heap = ints_in(tables, 13), longs_in(tables, 14)
    ids, n = ints_in(tables, 15), text.shape[0]
    i, entries, ends, joins, digits = state[0], state[1], state[2], state[3], state[4]
    left, written, why = state[5], state[6], ENDED
    while i < n:
        end, seen = word_end(text, i, n, kinds, joins, digits)
        if ends == 0 and seen + LOOKAHEAD + left > n:
            break
        slot = word_slot(text, i, end, letters, starts, slots)
        if slots[slot] == 0:
            if 3 * (end - i) > min(scratch.shape[0], heap.shape[0]):
                why = TOO_LONG
                break
            count = _merged(text, i, end, bytes_ids, keys, pairs, ranks, joined, scratch, heap, ids, written)
            if count < 0:
                why = UNKNOWN
                break
            if end - i <= letters.shape[0] >> 8:  # very long words rarely recur
                if (2 * entries >= slots.shape[0] or starts[entries] + end - i > letters.shape[0]
                        or begins[entries] + count > known.shape[0]):  # fmt: skip
                    why = FULL
                    break
                add_word(text, i, end, letters, starts, slots, slot, entries)
                for k in range(count):
                    known[begins[entries] + k] = ids[written + k]
                entries += 1
                begins[entries] = begins[entries - 1] + count
            written += count
        else:
            entry = slots[slot] - 1
            for k in range(begins[entry], begins[entry + 1]):
                ids[written] = known[k]
                written += 1
        i = end
    state[0], state[1], state[6], state[7] = i, entries, written, why


@compiled
def _merged(text, i, end, bytes_ids, keys, pairs, ranks, joined, scratch, heap, ids, written):
    """Write the ids of one word and return their number, -1 if a byte has none.

    Joins the pair of least rank first, the leftmost of equals. `scratch` holds ids and links to the previous and next
    place; the heap may hold stale pairs, which are skipped.
    """
    n, size = end - i, 0
    for k in range(n):
        scratch[3 * k] = bytes_ids[text[i + k]]
        scratch[3 * k + 1], scratch[3 * k + 2] = k - 1, k + 1
        if scratch[3 * k] < 0:
            return -1
    for k in range(n - 1):
        size = _consider(k, n, keys, pairs, ranks, scratch, heap, size)
    while size > 0:
        least = heap[0]
        size -= 1
        _sift_down(heap, size, heap[size])
        k = least & 0xFFFFFFFF
        if scratch[3 * k] < 0:
            continue
        behind = scratch[3 * k + 2]
        if behind >= n:
            continue
        slot = pair_slot(int(scratch[3 * k]) << 32 | int(scratch[3 * behind]), keys, pairs)
        if pairs[slot] == 0 or ranks[pairs[slot] - 1] != least >> 32:
            continue
        scratch[3 * k] = joined[pairs[slot] - 1]
        scratch[3 * behind] = -1
        after = scratch[3 * behind + 2]
        scratch[3 * k + 2] = after
        if after < n:
            scratch[3 * after + 1] = k
            size = _consider(k, n, keys, pairs, ranks, scratch, heap, size)
        if scratch[3 * k + 1] >= 0:
            size = _consider(scratch[3 * k + 1], n, keys, pairs, ranks, scratch, heap, size)
    k, count = 0, 0
    while k < n:
        ids[written + count] = scratch[3 * k]
        count += 1
        k = scratch[3 * k + 2]
    return count


@compiled
def _consider(k, n, keys, pairs, ranks, scratch, heap, size):
    """Put the pair at k onto the heap if it can be joined; return the heap's size."""
    key = int(scratch[3 * k]) << 32 | int(scratch[3 * scratch[3 * k + 2]])
    slot = pair_slot(key, keys, pairs)
    if pairs[slot] == 0:
        return size
    value, at = int(ranks[pairs[slot] - 1]) << 32 | k, size
    while at > 0 and heap[(at - 1) >> 1] > value:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = value
    return size + 1


@compiled
def _sift_down(heap, size, value):
    """Replace the least value of a heap of this size."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
