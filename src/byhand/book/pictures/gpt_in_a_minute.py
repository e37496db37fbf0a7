"""A GPT on one page: the paper GPT from three words to the fourth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byhand.book.lessons.examples.paper_gpt import VOCABULARY
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SIZE, VIOLET
from byhand.book.pictures.passes import TOKENS, next_token, pass_of
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Arrow, Box, Space
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, Link, heading
from byhand.book.pictures.scene.marks import Bars
from byhand.book.words.language import Said, Words, say

INSIDE = (
    (Words("LayerNorm", "层归一化"), "", Words("bring to one scale", "统一尺度")),
    (Words("attention", "注意力"), GREEN, Words("look at earlier words", "回看前面的词")),
    (Words("MLP", "前馈网络"), GREEN, Words("work on each word alone", "各词单独处理")),
)


def values() -> tuple[dict[str, Any], list[float], int]:
    """Return the arrays of the pass, the probabilities of the next word, and the one that is drawn."""
    arrays = pass_of("paper-gpt").trace.values
    return arrays, *next_token(arrays["logits"][0, -1])


def percent(chance: float) -> str:
    """Return a probability in percent."""
    return f"{100 * chance:.1f}%"


def numbers(row: Any) -> str:
    """Write a vector."""
    return ", ".join(decimal(float(number), 2) for number in row)


@scene("A GPT, from a text to its next word", "GPT：从文本到下一个词")
def gpt_in_a_minute() -> Column:
    """Text, numbers, vectors, blocks, probabilities, the next word, and back to the text."""
    arrays, chances, drawn = values()
    text, next_word = [VOCABULARY[token] for token in TOKENS], VOCABULARY[drawn]
    ids = Words(*(", ".join(f"{w.said(lang)} = {k}" for k, w in enumerate(VOCABULARY)) for lang in ("en", "zh")))
    after = [[f"{numbers(row[:2])},", numbers(row[2:])] for row in arrays["blocks.0.x_out"][0]]
    bars = [_chance(word, p, max(chances), v) for v, (word, p) in enumerate(zip(VOCABULARY, chances, strict=True))]
    appended = Words(
        f"one is drawn, {next_word.en}, and appended to the text; then repeat",
        f"抽取一个，{next_word.zh}，接到文本后面，然后重复",
    )
    down, vectors = _four([Arrow()] * len(text)), Words("vectors", "向量")
    last = Words("One is drawn and appended; then repeat.", "抽取一个，接到文本后面；然后重复整个过程。")
    lines = [
        heading(Words("Text", "文本"), Words("here of three different words", "这里只有三个不同的词")),
        _four([*(_word(word, VIOLET) for word in text),
               _word(next_word, line=RUST, dashed=True, name="next", says="")], Words("text", "文本")), down,
        heading(Words("Numbers", "编号"), ids),
        _four([_word(str(token), VIOLET, shows="tokens") for token in TOKENS], Words("numbers", "编号")), down,
        heading(Words("Vectors", "向量"), Words("looked up by word and position", "按词与位置查表")),
        _four([Box(numbers(row), BLUE, high=26, shows="x") for row in arrays["x"][0]], vectors, " | "), down,
        _blocks(), down,
        heading(Words("Vectors", "向量"), Words("now they hold the context", "现在包含了前文的信息")),
        _four([Box("\n".join(row), BLUE, shows="x_out") for row in after], vectors, " | "),
        _four([Space()] * (len(text) - 1) + [Arrow()]),
        heading(Words("Probability of the next word", "下一个词的概率"),
                Words("read off the last", "由最后一个位置得出")),
        _four(bars, Words("probabilities of the next word", "下一个词的概率"), ", "),
        Caption(last, bold=True, size=SIZE, says=appended),
    ]  # fmt: skip
    loop = Link(f"chance{drawn}", "next", "right", "right", colour=RUST, thick=2, away=16)
    return Column([Across([Column(lines, gap=5, join=" → "), Space()], gap=0, widths=(368, None))], links=[loop])


def _word(word: Said, fill: str = "", **others: Any) -> Box:
    return Box(word, fill, high=26, size=SIZE, **others)


def _four(elements: Sequence[Figure], title: Said = "", join: str = " ") -> Across:
    """Return elements below the four places of words."""
    said = None
    if title:
        said = Words(*(f"{say(title, lang)} {join.join(Across(elements[:3], join=join).parts(lang))}"
                       for lang in ("en", "zh")))  # fmt: skip
    room = [Space()] * (4 - len(elements))
    return Across([*elements, *room], gap=12, widths=(80,) * 4, says=said or "")


def _blocks() -> Across:
    """Return the three parts of a block; only attention leads from each word to later ones."""
    lines = [Across([_word(name, fill, line=GREEN), Caption(does)], widths=(76, None)) for name, fill, does in INSIDE]
    box = Column(lines, line=GREEN, pad=6)
    words = heading(Words("blocks, in a row", "多个块，依次相接"))
    says = Words("blocks (LayerNorm, attention, MLP)", "若干个块（层归一化、注意力、前馈网络）")
    return Across([box, words], widths=(264, 60), says=says)


def _chance(word: Words, chance: float, largest: float, place: int) -> Chart:
    """Return a bar as high as a word is likely."""
    said = Words(f"{word.en} {percent(chance)}", f"{word.zh} {percent(chance)}")
    bars = Bars([chance], RUST, words=[""], most=32)
    return Chart((-0.5, 0.5), (0, largest), [bars], 60, {0: said}, name=f"chance{place}", says=said, zero=False)
