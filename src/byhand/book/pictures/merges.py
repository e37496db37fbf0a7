"""Byte-pair encoding as a picture: the bytes of a word join, merge by merge."""

from __future__ import annotations

from byhand.book.lessons.examples.bpe import FIRST, MERGES, TEXT
from byhand.book.pictures.canvas import BLUE, SIZE
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Box, told
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column
from byhand.book.words.language import Words
from byhand.tokenizers.plain import joined, learn
from byhand.tokenizers.splitting import words

CELL = 34.0


def stages() -> list[list[str]]:
    """Return the tokens of the last word, before the first merge and after each."""
    cut = [word.encode() for word in words(TEXT)]
    names = {byte: chr(byte).replace(" ", "␣") for byte in TEXT.encode()}
    row, found = tuple(cut[-1]), list[list[str]]()
    for k, pair in enumerate([*learn(dict.fromkeys(cut, 1), MERGES), (-1, -1)]):
        found.append([names[id_] for id_ in row])
        if pair[0] >= 0:
            names[FIRST + k] = names[pair[0]] + names[pair[1]]
            row = joined(row, pair, FIRST + k)
    return found


@scene("The last word of the text, merge by merge", "文本的最后一个词，逐次合并")
def merges() -> Column:
    """The tokens of a word as boxes, as wide as they have bytes; new ones are filled."""
    before, lines = None, []
    for k, tokens in enumerate(stages()):
        label = Words(f"after merge {k}", f"第 {k} 次合并后") if k else Words("bytes", "字节")
        boxes = [Box(t, BLUE * (t not in (before or tokens)), high=26, size=SIZE) for t in tokens]
        widths = 110, *(len(token) * CELL - 2 for token in tokens)
        says = told(label, " ".join(tokens))
        lines.append(Across([Caption(label, at="end"), *boxes], gap=2, widths=widths, says=says))
        before = tokens
    return Column(lines)
