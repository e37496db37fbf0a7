"""What the page asks: where the numbers of the lesson's score lie, before the split into heads and after it."""

from byhand.book.lessons.examples.attention_index import PLACE, SHAPE
from byhand.book.lessons.examples.memory_layout import offset
from pages.answers.lessons import lesson_arrays


def packed_offsets() -> list[tuple[str, int, list[int], int, float]]:
    """Return the numbers of the lesson's score: element and offset by head, those side by side, value."""
    b, h, t, s = PLACE
    batch, heads, length, width = SHAPE
    rows = []
    for part, (name, position) in enumerate((("q", t), ("k", s))):
        for d in range(width):
            by_head, side = (b, h, position, d), (b, position, (part * heads + h) * width + d)
            element = f"{name}[{','.join(map(str, by_head))}]"
            own, packed = offset(by_head, SHAPE), offset(side, (batch, length, 3 * heads * width))
            value = lesson_arrays("attention-index")[name][by_head]
            rows.append((element, int(own.value), list(side), int(packed.value), value))
    return rows
