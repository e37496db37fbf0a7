"""What the page asks: the lesson's numbers, and its queries and keys in flat memory."""

from typing import Any

import numpy as np

from byhand.book.lessons.examples import make
from byhand.book.lessons.examples.attention_index import PLACE, queries_and_keys
from byhand.book.lessons.examples.memory_layout import offset
from byhand.book.numbers import closed_form
from byhand.book.words.language import Words
from byhand.equations.split_qkv import split_qkv


def lesson_numbers(name: str) -> list[tuple[Words, Any]]:
    """Return every number of a worked example, with the title of its step."""
    return [(step.title, number) for step in make(name).steps for number in step.numbers]


def queries_and_keys_in_memory() -> list[list[int]]:
    """Return the queries and the keys of the lesson attention-index in flat memory."""
    return [x.data.astype(int).ravel().tolist() for x in queries_and_keys(closed_form.array)]


def packed_offsets() -> list[tuple[str, int, list[int], int, float]]:
    """Return the numbers of the lesson's score: element and offset by head, those side by side, value."""
    b, h, t, s = PLACE
    q, k = (x.data for x in queries_and_keys(closed_form.array))
    _, heads, _, width = q.shape
    packed = split_qkv.vjp((), (q, k, np.zeros_like(q)), n_heads=heads)[0]  # side by side again
    rows = []
    for name, array, position, part in (("q", q, t, 0), ("k", k, s, 1)):
        for d in range(width):
            by_head, side = (b, h, position, d), (b, position, (part * heads + h) * width + d)
            flat = int(offset(side, packed.shape).value)
            element = f"{name}[{','.join(map(str, by_head))}]"
            rows.append((element, int(offset(by_head, array.shape).value), list(side), flat, packed.ravel()[flat]))
    return rows
