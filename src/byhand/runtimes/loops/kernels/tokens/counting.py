"""Kernel of counting: the occurrences of each distinct word in a text that comes in blocks."""

from __future__ import annotations

from byhand.runtimes.loops.kernels.tokens.cutting import word_end
from byhand.runtimes.loops.kernels.tokens.tables import add_word, word_slot
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import bytes_in, ints_in, longs_in

LOOKAHEAD = 4  # bytes of the longest character


@kernel
def count_words(tables):
    """Count words until the text ends or the table is full.

    Tables: state, the block, kinds, letters, starts, slots, counts. The state is: position reached, distinct words,
    whether the text ends with the block, joins, digits (see `word_end`), bytes to leave at the block's end.
    """
    state = longs_in(tables, 0)
    text, kinds = bytes_in(tables, 1), bytes_in(tables, 2)
    letters, starts = bytes_in(tables, 3), longs_in(tables, 4)
    slots, counts = ints_in(tables, 5), longs_in(tables, 6)
    n = text.shape[0]
    i, entries, ends, joins, digits, left = state[0], state[1], state[2], state[3], state[4], state[5]
    while i < n:
        end, seen = word_end(text, i, n, kinds, joins, digits)
        if ends == 0 and seen + LOOKAHEAD + left > n:
            break
        slot = word_slot(text, i, end, letters, starts, slots)
        if slots[slot] == 0:
            if 2 * entries >= slots.shape[0] or starts[entries] + end - i > letters.shape[0]:
                break
            add_word(text, i, end, letters, starts, slots, slot, entries)
            entries += 1
        counts[slots[slot] - 1] += 1
        i = end
    state[0], state[1] = i, entries
