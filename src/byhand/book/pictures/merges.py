"""Byte-pair encoding as a picture: the bytes of a word join, merge by merge."""

from __future__ import annotations

from byhand.book.lessons.examples.bpe import FIRST, MERGES, TEXT
from byhand.book.pictures.canvas import BLUE, SMALL, Canvas
from byhand.book.pictures.picture import picture
from byhand.book.words.language import Words
from byhand.tokenizers.plain import joined, learn
from byhand.tokenizers.splitting import words

CELL, HIGH, LEFT = 34.0, 26.0, 118.0


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


def in_words(lang: str) -> str:
    """Say the tokens after each merge."""
    said = " → ".join(" ".join(tokens) for tokens in stages())
    return Words(f"The last word of the text, merge by merge: {said}.", f"文本的最后一个词，逐次合并：{said}。").said(
        lang
    )


@picture(Words("A word, merge by merge", "一个词的逐次合并"), in_words)
def merges(canvas: Canvas) -> None:
    """The tokens of a word as boxes, as wide as they have bytes; new ones are filled."""
    before: list[str] = []
    canvas.y += 4
    for k, tokens in enumerate(stages()):
        label = Words(f"after merge {k}", f"第 {k} 次合并后") if k else Words("bytes", "字节")
        canvas.text(LEFT - 10, canvas.y + HIGH * 0.68, label, at="end", size=SMALL)
        x = LEFT
        for token in tokens:
            new = bool(before) and token not in before
            canvas.box(x + 1, canvas.y, len(token) * CELL - 2, HIGH, token, fill=BLUE if new else "none")
            x += len(token) * CELL
        before = tokens
        canvas.y += HIGH + 8
