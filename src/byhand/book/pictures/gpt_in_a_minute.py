"""A GPT on one page: the paper GPT from three words to the fourth."""

from __future__ import annotations

from functools import partial
from typing import Any

from byhand.book.lessons.examples.paper_gpt import VOCABULARY
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SIZE, SMALL, VIOLET, WHITE, Canvas
from byhand.book.pictures.passes import TOKENS, next_token, pass_of
from byhand.book.pictures.picture import picture
from byhand.book.words.language import Words

COLUMN, BOX, LEFT, RIGHT = 92, 80, 4, 378
LAST = Words("read off the last", "由最后一个位置得出")
INSIDE = (
    ("LayerNorm", Words("bring to one scale", "统一尺度")),
    (Words("attention", "注意力"), Words("look at earlier words", "回看前面的词")),
    (Words("MLP", "前馈网络"), Words("work on each word alone", "逐个处理词")),
)


def values() -> tuple[dict[str, Any], list[float], int]:
    """Return the arrays of the pass, the probabilities of the next word, and the one that is drawn."""
    arrays = pass_of("paper-gpt").trace.values
    return arrays, *next_token(arrays["logits"][0, -1])


def percent(chance: float) -> str:
    """Return a probability in percent."""
    return f"{100 * chance:.1f}%"


def in_words(lang: str) -> str:
    """Say the way with its numbers."""
    arrays, chances, drawn = values()
    word = [words.said(lang) for words in VOCABULARY]
    text = " ".join(word[token] for token in TOKENS)
    ids = " ".join(map(str, TOKENS))
    vectors = " ".join(f"({numbers(row)})" for row in arrays["x"][0])
    shares = ", ".join(f"{name} {percent(chance)}" for name, chance in zip(word, chances, strict=True))
    return Words(
        f"Text {text} → numbers {ids} → vectors {vectors} → blocks (LayerNorm, attention, MLP) → probability of each "
        f"next word: {shares} → one is drawn, {word[drawn]}, and appended to the text; then repeat.",
        f"文本 {text} → 编号 {ids} → 向量 {vectors} → 若干个块（层归一化、注意力、前馈网络）→ 下一个词的概率："
        f"{shares} → 抽取一个，{word[drawn]}，接到文本后面，然后重复。",
    ).said(lang)


def numbers(row: Any) -> str:
    """Write a vector."""
    return ", ".join(decimal(float(number), 2) for number in row)


@picture(Words("What a GPT does", "GPT 做什么"), in_words)
def gpt_in_a_minute(canvas: Canvas) -> None:
    """Text, numbers, vectors, blocks, probabilities, the next letter, and back to the text."""
    arrays, chances, drawn = values()
    label = partial(canvas.label, right=RIGHT)
    word = [words.said(canvas.lang) for words in VOCABULARY]
    label(Words("Text", "文本"), Words("here of three different words", "这里只有三个不同的词"), right=RIGHT)
    top = canvas.y
    _boxes(canvas, [word[token] for token in TOKENS], VIOLET)
    canvas.box(LEFT + 3 * COLUMN, top, BOX, 26, word[drawn], line=RUST, dashed=True)
    _down(canvas)
    label(Words("Numbers", "编号"), ", ".join(f"{name} = {k}" for k, name in enumerate(word)))
    _boxes(canvas, [str(token) for token in TOKENS], VIOLET)
    _down(canvas)
    label(Words("Vectors", "向量"), Words("looked up by word and position", "按词与位置查表"))
    _boxes(canvas, [numbers(row) for row in arrays["x"][0]], BLUE, size=SMALL)
    _down(canvas)
    _blocks(canvas)
    _down(canvas)
    label(Words("Vectors", "向量"), Words("now they hold the context", "现在包含了前文的信息"))
    _boxes(canvas, [""] * len(TOKENS), BLUE, high=40)
    for i, row in enumerate(arrays["blocks.0.x_out"][0]):
        for half, part in enumerate((f"{numbers(row[:2])},", numbers(row[2:]))):
            x, y = LEFT + i * COLUMN + BOX / 2, canvas.y - 40 + 17 + 15 * half
            canvas.text(x, y, part, at="middle", colour=WHITE)
    _down(canvas, first=2)
    label(Words("Probability of the next word", "下一个词的概率"), LAST)
    foot = _bars(canvas, word, chances)
    x = LEFT + drawn * COLUMN + BOX / 2
    side = canvas.width - 5
    canvas.arrow(
        [(x, foot), (x, foot + 14), (side, foot + 14), (side, top + 13), (LEFT + 3 * COLUMN + BOX, top + 13)],
        colour=RUST, thick=2,
    )  # fmt: skip
    canvas.y = foot + 32
    said = Words("One is drawn and appended; then repeat.", "抽取一个，接到文本后面；然后重复整个过程。")
    canvas.text(LEFT, canvas.y, said, bold=True)
    canvas.y += 8


def _boxes(canvas: Canvas, words: list[str], fill: str, high: float = 26, size: float = SIZE) -> None:
    for i, word in enumerate(words):
        canvas.box(LEFT + i * COLUMN, canvas.y, BOX, high, word, fill=fill, size=size)
    canvas.y += high


def _down(canvas: Canvas, first: int = 0) -> None:
    for i in range(first, len(TOKENS)):
        x = LEFT + i * COLUMN + BOX / 2
        canvas.arrow([(x, canvas.y + 2), (x, canvas.y + 16)])
    canvas.y += 18


def _blocks(canvas: Canvas) -> None:
    """Draw the three parts of a block; only attention leads from each letter to later ones."""
    width = 2 * COLUMN + BOX
    canvas.box(LEFT, canvas.y, width, 112, line=GREEN, round_by=8)
    canvas.text(LEFT + width + 8, canvas.y + 50, Words("blocks,", "多个块，"), bold=True)
    canvas.text(LEFT + width + 8, canvas.y + 68, Words("in a row", "依次相接"), bold=True)
    for name, does in INSIDE:
        learned = name != "LayerNorm"
        canvas.box(LEFT + 8, canvas.y + 8, 84, 26, name, fill=GREEN if learned else "none", line=GREEN)
        canvas.text(LEFT + 100, canvas.y + 26, does, size=SMALL)
        canvas.y += 34
    canvas.y += 10


def _bars(canvas: Canvas, word: list[str], chances: list[float]) -> float:
    """Draw a bar for each word, as high as it is likely; return their lower edge."""
    foot = canvas.y + 84
    for i, chance in enumerate(chances):
        x, height = LEFT + i * COLUMN, 60 * chance / max(chances)
        canvas.box(x + 24, foot - 22 - height, BOX - 48, height, fill=RUST, round_by=2)
        canvas.text(x + BOX / 2, foot - 6, f"{word[i]} {percent(chance)}", at="middle")
    return foot
