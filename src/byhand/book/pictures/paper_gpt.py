"""The four-column GPT: from three words to the fourth, one update, and three tokens decoded with a cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from byhand.book.lessons.examples.paper_gpt import OPTIMIZER, RATE, VOCABULARY
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SIZE, VIOLET
from byhand.book.pictures.passes import (
    BLOCK,
    TARGETS,
    TOKENS,
    cached_passes,
    next_token,
    paper_model,
    pass_of,
    rows_of,
)
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import Cells
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Arrow, Box, Key, Sign, Space
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, Link, heading
from byhand.book.pictures.scene.marks import Bars
from byhand.book.words.language import Said, Words, say
from byhand.config import OptimConfig
from byhand.optim import AdamW

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


@scene("A GPT, from a text to its next word", "GPT：从文本到下一个词")
def gpt_in_a_minute() -> Column:
    """Text, numbers, vectors, blocks, probabilities, the next word, and back to the text."""
    arrays, chances, drawn = values()
    text, next_word = [VOCABULARY[token] for token in TOKENS], VOCABULARY[drawn]
    ids = Words(*(", ".join(f"{w.said(lang)} = {k}" for k, w in enumerate(VOCABULARY)) for lang in ("en", "zh")))
    before, after = (rows_of(arrays[name][0], 2) for name in ("x", "blocks.0.x_out"))
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
        _four([Box(", ".join(row), BLUE, high=26, shows="x") for row in before], vectors, " | "), down,
        _blocks(), down,
        heading(Words("Vectors", "向量"), Words("now they hold the context", "现在包含了前文的信息")),
        _four([Box(f"{a}, {b},\n{c}, {d}", BLUE, shows="x_out") for a, b, c, d in after], vectors, " | "),
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


def one_update() -> list[str]:
    """Make an update, clipped as by default; return the loss before and after, the gradient's norm, and its cap."""
    model = paper_model()
    loss, largest = model.loss([TOKENS], [TARGETS]), OptimConfig().grad_clip
    loss.backward()
    betas = OPTIMIZER["beta1"], OPTIMIZER["beta2"]
    optimizer = AdamW(lr=RATE, betas=betas, eps=OPTIMIZER["eps"], weight_decay=OPTIMIZER["weight_decay"])
    norm = optimizer.clipped_step(model.parameters(), largest)
    after = model.loss([TOKENS], [TARGETS])
    return [decimal(float(x), 4) for x in (loss.item(), after.item(), norm, largest)]


@scene("Training and generation share the forward pass", "训练与生成使用同一个前向传播与同一组参数")
def training_loop() -> Column:
    """Training on the left, generation on the right, the forward pass and the parameters in both."""
    (before, after, norm, largest), (_, chances, drawn) = one_update(), values()
    likely = " ".join(f"{100 * chance:.0f}%" for chance in chances)
    text, wanted = (" ".join(map(str, tokens)) for tokens in (TOKENS, TARGETS))
    clipped = f"{norm} {'→' if float(norm) > float(largest) else '≤'} {largest}"
    both, left = _pair(Arrow(), Arrow()), _pair(Arrow(), Space())
    now = Words(f"The same batch now has loss {after}", f"同一批次现在的损失为 {after}")
    forward = Words("with the parameters, the same in both", "使用同一组参数")
    lines = [
        _pair(heading(Words("Training", "训练")), heading(Words("Generation", "生成"))),
        _pair(Box([Words("batch", "批次"), f"x = {text}, y = {wanted}"], VIOLET, name="batch"),
              Box([Words("text so far", "已有的文本"), text], VIOLET, name="text")), both,
        Box([Words("forward pass", "前向传播"), forward], GREEN), both,
        _pair(Box([Words("loss", "损失"), before], BLUE),
              Box([Words("probabilities", "概率"), likely], BLUE)), both,
        _pair(Box([Words("backward", "反向传播"), Words("gradient per parameter", "全部参数的梯度")], RUST),
              Box([Words("draw and append", "抽取并接上"), str(drawn)], VIOLET, name="drawn")), left,
        _pair(Box([Words("clip", "裁剪"), Words(f"norm {clipped}", f"范数 {clipped}")], RUST), Space()), left,
        _pair(Box(["AdamW", Words("new parameters", "新的参数")], GREEN, name="adamw"), Caption(now, size=SIZE)),
    ]  # fmt: skip
    ways = ("adamw", "batch", "left"), ("drawn", "text", "right")
    links = [Link(start, end, side, side, thick=2, away=15) for start, end, side in ways]
    return Column([Column(lines, gap=3, pad=18)], links=links)


def _pair(left: Figure, right: Figure) -> Across:
    return Across([left, right], gap=24, widths=(None, None))


CELL, HEAD = (44.0, 18.0), 0
SHOWN = 2  # columns; the others of the lesson's keys and values are 0
WIDTHS = (88, 88, 132, 72)  # pixels: keys, values, scores, rows without a cache


class Decoded(NamedTuple):
    """One token decoded: the keys and values of head 0 so far, and the row of scores that was computed."""

    keys: list[list[str]]
    values: list[list[str]]
    scores: list[str]


def decoded() -> list[Decoded]:
    """Return the keys, values and scores of head 0 for each of the lesson's tokens."""
    found = []
    for trace in cached_passes():
        (scores, _), (mixed, _) = (trace.made[f"{BLOCK}attn.{name}"] for name in ("scores", "mixed"))
        arrays = scores.inputs[1].data[..., :SHOWN], mixed.inputs[1].data[..., :SHOWN], scores.results[0].data
        keys, values, (row,) = (rows_of(array[0, HEAD], 3) for array in arrays)
        found.append(Decoded(keys, values, row))
    return found


@scene("A KV cache growing by one row per token", "键值缓存：每个词元增加一行")
def cache_growing() -> Column:
    """Rows kept in one colour, rows computed in the other; at the right the rows of a pass without a cache."""
    width, count = paper_model().config.head_width, len(TOKENS)
    without = sum(range(1, count + 1))  # the whole context for each token
    key = Key([Sign(Words("kept", "保留"), BLUE), Sign(Words("computed now", "本步计算"), RUST)])
    shown = Words(f"{SHOWN} of {width} columns, rest 0", f"{width} 列中的前 {SHOWN} 列，其余为 0")
    names = "K", "V", Words("scores", "分数"), Words("no cache", "没有缓存")
    total = Words(
        f"Rows computed: {count} with the cache, {without} without.",
        f"计算的行数：有缓存 {count} 行，没有缓存 {without} 行。",
    )
    head = Across(list(map(heading, names)), gap=4, widths=WIDTHS)
    return Column([Across([key, Caption(shown, at="end")]), head, *map(_step, TOKENS, decoded()), heading(total)])


def _step(token: int, step: Decoded) -> Column:
    """Return the cache after a token, and the rows computed for it."""
    new, lines = len(step.keys) - 1, []
    for row in range(len(TOKENS)):
        fill, empty = RUST if row == new else BLUE, Box("", dashed=True, high=18, wide=2 * CELL[0])
        cells: list[Figure] = [empty, empty, Space(), Space()]
        if row <= new:
            cells[:2] = [Cells([found[row]], fill, cell=CELL) for found in (step.keys, step.values)]
            cells[3] = Box(Words(f"row {row}", f"第 {row} 行"), RUST, high=18, wide=72)
        if row == new:
            cells[2] = Cells([step.scores], RUST, cell=CELL, at="start")
        lines.append(Across(cells, gap=4, widths=WIDTHS))
    name = Words(f"token {token} at position {new}", f"位置 {new}，词元 {token}")
    k, v, scores = (f"({', '.join(found)})" for found in (step.keys[-1], step.values[-1], step.scores))
    says = Words(
        f"{name.en}: new row k = {k}, v = {v}, {new} kept, scores {scores}",
        f"{name.zh}：新的一行 k = {k}、v = {v}，保留 {new} 行，分数 {scores}",
    )
    return Column([Caption(name), *lines], gap=2, says=says)
