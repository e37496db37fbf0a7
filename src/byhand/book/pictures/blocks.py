"""The block and its residual stream, read from the recorded graph: norms before the sublayers, or after the sums."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from byhand.book.entries.contract import ENTRIES
from byhand.book.pictures.canvas import BLUE, GREEN, GREY, SIZE, SMALL, VIOLET, text_width
from byhand.book.pictures.passes import BLOCK, pass_through
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Box, Key, Sign, Space, dot
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, Link, heading
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.tracing.passes import Pass
from byhand.tracing.tracer import Application

TRUNK = 116  # pixels of the stream's column
SUBLAYERS = {
    "attn": Words("Attention: between the tokens", "注意力：词元之间交换信息"),
    "mlp": Words("MLP: within each token", "前馈网络：每个词元单独计算"),
}
SUMS = Words(
    "x_mid and x_out are sums: what the sublayer returns is added to the stream.",
    "x_mid 与 x_out 是相加的结果：子层的结果加到残差流上。",
)
ADDED = Words("+ adds what the sublayer returns to the stream.", "+ 把子层的结果加到残差流上。")
PRE, POST = ModelConfig(), ModelConfig(norm_position="post", activation="relu", causal=False)


def block_of(trace: Pass) -> list[Application]:
    """Return the applications of a model's first block, in order."""
    return [a for a in trace.applications if a.name.startswith(BLOCK)]


def stream_of(block: Sequence[Application]) -> list[Tensor]:
    """Return the residual stream of a block, from its input on: the first input of sums and of norms behind them."""
    made = {id(a.results[0]): a for a in block}
    stream = [block[-1].results[0]]
    while (last := made.get(id(stream[0]))) and last.equation.name in ("residual", "layer_norm"):
        stream.insert(0, last.inputs[0])
    return stream


def parts_of(block: Sequence[Application]) -> list[list[Application]]:
    """Return the applications by their places: one on the stream, or all of a sublayer together."""
    return [list(group) for _, group in groupby(block, key=lambda a: _sublayer(a) or a.name)]


def title_of(application: Application) -> Words:
    """Return the title of an application's equation."""
    if application.equation.name == "split_qkv":
        return Words("Split into q, k, v and heads", "拆分为 q、k、v 与多头")
    return Words(application.equation.title, ENTRIES[application.equation.name].title_zh)


def _sublayer(application: Application) -> str:
    return application.name.removeprefix(BLOCK).rpartition(".")[0]


def _graph(title: Words, config: ModelConfig, coded: bool = True) -> Column:
    """Return the stream as a trunk at the left, from top to bottom, with its branches at the right.

    coded  whether its parts have their names in the code
    """
    block = block_of(pass_through(config, 1, 2))
    stream = stream_of(block)
    on_trunk = {id(tensor) for tensor in stream}
    into = Words(
        "residual stream [B,T,C]: from the embeddings, or from the previous block",
        "残差流 [B,T,C]，来自嵌入或上一个块",
    )
    out = Words("to the next block; after L blocks, to the LM head", "到下一个块；经过 L 个块之后，到语言模型头")
    links, trunk, above = [], "x", ""
    start = (stream[0].name or "x").removeprefix(BLOCK)
    way: list[Figure] = [_beside(Space(wide=20, name="x"), start if coded else "")]
    for group in parts_of(block):
        first, name = group[0], group[0].name
        if first.equation.name == "residual":
            way.append(_beside(dot("+", "", name, 10), name.removeprefix(BLOCK) if coded else ""))
            links += [Link(above, name, "bottom", "right"), Link(trunk, name, colour=BLUE, thick=3)]
            trunk, above = name, ""
        elif id(first.results[0]) in on_trunk:
            norm = Box([name.removeprefix(BLOCK), title_of(first)], name=name)
            way.append(Across([norm, Space()], widths=(TRUNK, None)))
            links.append(Link(trunk, name, colour=BLUE, thick=3))
            trunk = name
        else:
            if not above:
                above = f"fork before {name}"
                way.append(_beside(Space(wide=4, name=above)))
            way.append(Across([Space(), _branch(group, coded)], gap=4, widths=(TRUNK - 20, None)))
            links.append(Link(above, name, "right" if "fork" in above else "bottom"))
            above = name
    way.append(_beside(Space(8, 20, name="end")))
    links.append(Link(trunk, "end", "bottom", "bottom", colour=BLUE, thick=3, straight=True))
    learned = Key([Sign(Words("learned weights", "可学习的权重"), GREEN)], at="start")
    key = Across([Space(), learned if coded else Space()], widths=(TRUNK - 20, None))
    head = Column([heading(title), Caption(into)], says=SUMS if coded else ADDED)
    return Column([head, Column(way, gap=9, join=" → "), key, Caption(out)], gap=2, links=links)


def _beside(stream: Figure, name: str = "") -> Across:
    """Return a figure on the stream, with its name at the left."""
    label = Caption(name, bold=True, size=SIZE, at="end")
    return Across([label, stream, Space()], widths=(TRUNK / 2 - 18, 20, None), says=name)


def _branch(group: Sequence[Application], coded: bool) -> Column:
    """Return a norm or a sublayer: of each application its name in the code, its equation, and its weights."""
    lines: list[Figure] = []
    for application in group:
        weights = [t.name.rpartition(".")[2] for t in application.inputs if t.requires_grad and t.node is None]
        learned = tag(*weights if coded and "norm" not in application.equation.name else ())
        short = Caption(application.name.rpartition(".")[2] if coded else "", bold=True)
        wide = (56 if coded else 8, None, learned.wide)
        lines.append(Across([short, Caption(title_of(application)), learned], widths=wide))
    sublayer = _sublayer(group[0])
    head = [Box([SUBLAYERS[sublayer]], VIOLET, high=24)] if sublayer else []
    rows = Column(lines, gap=3, pad=5)
    if coded:
        says = sublayer or group[0].name.removeprefix(BLOCK)
    else:
        says = SUBLAYERS[sublayer] if sublayer else title_of(group[0])
    return Column([*head, rows], gap=0, line=GREY, name=group[0].name, says=says)


def tag(*weights: str) -> Box | Space:
    """Return the names of learned weights in a box as wide as they need, or nothing."""
    words = ", ".join(weights)
    return Box(words, GREEN, high=17, wide=text_width(words, SMALL) + 6) if words else Space()


@scene("A pre-norm block, as in GPT-2", "前置归一化的块，如 GPT-2")
def block() -> Column:
    """The block of the default model."""
    return _graph(block.title, PRE)


@scene("A block of a GPT: two parts, two sums", "GPT 的一个块：两部分，两次相加")
def block_in_words() -> Column:
    """The block of the default model, without names of the code."""
    return _graph(block_in_words.title, PRE, coded=False)


@scene("A post-norm block, as in the first Transformer", "后置归一化的块，如最初的 Transformer")
def post_norm_block() -> Column:
    """The block with norms after the sums, with ReLU and without a mask."""
    return _graph(post_norm_block.title, POST)
