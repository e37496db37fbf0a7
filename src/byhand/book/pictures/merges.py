"""Byte-pair encoding as a picture: the bytes of a word join, merge by merge."""

from __future__ import annotations

from byhand.book.lessons.examples.bpe import FIRST, MERGES, TEXT
from byhand.book.pictures.canvas import BLUE, SIZE
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Across, Box, Caption, Column, told
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


@scene(Words("A word, merge by merge", "一个词的逐次合并"),
       Words("The last word of the text, merge by merge. ", "文本的最后一个词，逐次合并。"))  # fmt: skip
def merges() -> Column:
    """The tokens of a word as boxes, as wide as they have bytes; new ones are filled."""
    before, lines = [], []
    for k, tokens in enumerate(stages()):
        label = Words(f"after merge {k}", f"第 {k} 次合并后") if k else Words("bytes", "字节")
        new = [bool(before) and token not in before for token in tokens]
        boxes = [Box(token, BLUE * fresh, high=26, size=SIZE) for token, fresh in zip(tokens, new, strict=True)]
        widths = 110, *(len(token) * CELL - 2 for token in tokens)
        says = told(label, " ".join(tokens))
        row = Across([Caption(label, at="end"), *boxes], gap=2, widths=widths, says=says)
        before = tokens
        lines.append(row)
    return Column(lines)
