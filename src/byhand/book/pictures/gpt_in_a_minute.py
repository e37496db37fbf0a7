"""A GPT on one page: the paper GPT from three letters to the fourth."""

from __future__ import annotations

from functools import partial
from typing import Any

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SMALL, VIOLET, Canvas
from byhand.book.pictures.passes import TOKENS, next_token, pass_of
from byhand.book.pictures.picture import picture
from byhand.book.words.language import Words

LETTERS = "abcd"  # of the paper GPT's four tokens
COLUMN, BOX, LEFT, RIGHT = 92, 80, 4, 378
LAST = Words("read off the last", "由最后一个位置得出")
INSIDE = (
    ("LayerNorm", Words("bring to one scale", "统一尺度")),
    (Words("attention", "注意力"), Words("look at earlier letters", "回看前面的字母")),
    (Words("MLP", "前馈网络"), Words("work on each letter alone", "逐个处理字母")),
)


def values() -> tuple[dict[str, Any], list[float], int]:
    """Return the arrays of the pass, the probabilities of the next letter, and the one that is drawn."""
    arrays = pass_of("paper-gpt").trace.values
    return arrays, *next_token(arrays["logits"][0, -1])


def percent(chance: float) -> str:
    """Return a probability in percent."""
    return f"{100 * chance:.1f}%"


def in_words(lang: str) -> str:
    """Say the way with its numbers."""
    arrays, chances, drawn = values()
    text = " ".join(LETTERS[token] for token in TOKENS)
    ids = " ".join(map(str, TOKENS))
    vectors = " ".join(f"({numbers(row)})" for row in arrays["x"][0])
    shares = ", ".join(f"{letter} {percent(chance)}" for letter, chance in zip(LETTERS, chances, strict=True))
    return Words(
        f"Text {text} → numbers {ids} → vectors {vectors} → blocks (LayerNorm, attention, MLP) → probability of each "
        f"next letter: {shares} → one is drawn, {LETTERS[drawn]}, and appended to the text; then repeat.",
        f"文本 {text} → 编号 {ids} → 向量 {vectors} → 若干个块（层归一化、注意力、前馈网络）→ 下一个字母的概率："
        f"{shares} → 抽取一个，{LETTERS[drawn]}，接到文本后面，然后重复。",
    ).said(lang)


def numbers(row: Any) -> str:
    """Write a vector."""
    return ", ".join(decimal(float(number), 2) for number in row)


@picture(Words("What a GPT does", "GPT 做什么"), in_words)
def gpt_in_a_minute(canvas: Canvas) -> None:
    """Text, numbers, vectors, blocks, probabilities, the next letter, and back to the text."""
    arrays, chances, drawn = values()
    label = partial(canvas.label, right=RIGHT)
    label(Words("Text", "文本"), Words("here of four letters: a b c d", "这里只有四个字母：a b c d"), right=RIGHT)
    top = canvas.y
    _boxes(canvas, [LETTERS[token] for token in TOKENS], VIOLET)
    canvas.box(LEFT + 3 * COLUMN, top, BOX, 26, LETTERS[drawn], line=RUST, dashed=True)
    _down(canvas)
    label(Words("Numbers", "编号"), "a = 0, b = 1, c = 2, d = 3")
    _boxes(canvas, [str(token) for token in TOKENS], VIOLET)
    _down(canvas)
    label(Words("Vectors", "向量"), Words("looked up by letter and position", "按字母与位置查表"))
    _boxes(canvas, [numbers(row) for row in arrays["x"][0]], BLUE)
    _down(canvas)
    _blocks(canvas)
    _down(canvas)
    label(Words("Vectors", "向量"), Words("now they hold the context", "现在包含了前文的信息"))
    _boxes(canvas, [numbers(row) for row in arrays["ln_f"][0]], BLUE)
    _down(canvas, first=2)
    label(Words("Probability of the next letter", "下一个字母的概率"), LAST)
    foot = _bars(canvas, chances)
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


def _boxes(canvas: Canvas, words: list[str], fill: str) -> None:
    for i, word in enumerate(words):
        canvas.box(LEFT + i * COLUMN, canvas.y, BOX, 26, word, fill=fill)
    canvas.y += 26


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


def _bars(canvas: Canvas, chances: list[float]) -> float:
    """Draw a bar for each letter, as high as it is likely; return their lower edge."""
    foot = canvas.y + 84
    for i, chance in enumerate(chances):
        x, height = LEFT + i * COLUMN, 60 * chance / max(chances)
        canvas.box(x + 24, foot - 22 - height, BOX - 48, height, fill=RUST, round_by=2)
        canvas.text(x + BOX / 2, foot - 6, f"{LETTERS[i]} {percent(chance)}", at="middle")
    return foot
