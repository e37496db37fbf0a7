"""The block and its residual stream, read from the recorded graph: norms before the sublayers, or after the sums."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from byhand.book.entries.contract import ENTRIES
from byhand.book.pictures.canvas import BLUE, GREEN, SMALL, VIOLET, Canvas, text_width
from byhand.book.pictures.passes import BLOCK, pass_through
from byhand.book.pictures.picture import picture
from byhand.book.words.language import COLON, Words
from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.tracing.passes import Pass
from byhand.tracing.tracer import Application

TRUNK, LEFT, RIGHT, BRANCH, ROW = 62, 106, 396, 150, 20
SUBLAYERS = {
    "attn": Words("Attention: between the tokens", "注意力：词元之间交换信息"),
    "mlp": Words("MLP: within each token", "前馈网络：每个词元单独计算"),
}
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
    groups: list[list[Application]] = []
    for application in block:
        sublayer = _sublayer(application)
        if sublayer and groups and _sublayer(groups[-1][0]) == sublayer:
            groups[-1].append(application)
        else:
            groups.append([application])
    return groups


def title_of(application: Application) -> Words:
    """Return the title of an application's equation."""
    if application.equation.name == "split_qkv":
        return Words("Split into q, k, v and heads", "拆分为 q、k、v 与多头")
    return Words(application.equation.title, ENTRIES[application.equation.name].title_zh)


def _sublayer(application: Application) -> str:
    return application.name.removeprefix(BLOCK).rpartition(".")[0]


def in_words(config: ModelConfig, lang: str) -> str:
    """Say the order of the block's parts."""
    names = [
        _sublayer(group[0]) or group[0].name.removeprefix(BLOCK)
        for group in parts_of(block_of(pass_through(config, 1, 2)))
    ]
    said = Words("A block, in the order in which it computes", "一个块，按计算顺序").said(lang)
    ends = Words(
        ". x_mid and x_out are sums: what the sublayer returns is added to the stream.",
        "。x_mid 与 x_out 是求和：子层的结果加到残差流上。",
    )
    return said + COLON.said(lang) + " → ".join(names) + ends.said(lang)


class _Drawing:
    """The stream as a trunk at the left, from top to bottom, with its branches at the right."""

    def __init__(self, canvas: Canvas, block: Sequence[Application], title: Words) -> None:
        self.canvas, self.block = canvas, block
        stream = stream_of(block)
        self.on_trunk, self.branched = {id(tensor) for tensor in stream}, False
        canvas.text(4, 14, title, bold=True)
        into = Words("residual stream [B,T,C]: embeddings, or the last block", "残差流 [B,T,C]，来自嵌入或上一个块")
        canvas.text(4, 32, into, size=SMALL)
        canvas.y = self.trunk = 42.0
        self.name(stream[0].name or "x")

    def draw(self) -> None:
        """Draw the block's applications from the first to the last."""
        for group in parts_of(self.block):
            first = group[0]
            if first.equation.name == "residual":
                self.join(first)
            elif id(first.results[0]) in self.on_trunk:
                self.norm_on_trunk(first)
            else:
                self.branch(group)
        self.down_to(self.canvas.y + 14)
        self.canvas.y += 18
        self.canvas.swatch(LEFT, self.canvas.y - 5, Words("learned weights", "可学习的权重"), GREEN)
        out = Words("to the next block; after L blocks, to the LM head", "到下一个块；经过 L 个块之后，到语言模型头")
        self.canvas.y += 18
        self.canvas.text(4, self.canvas.y - 2, out, size=SMALL)
        self.canvas.y += 4

    def down_to(self, y: float) -> None:
        """Extend the stream down to y."""
        self.canvas.arrow([(TRUNK, self.trunk), (TRUNK, y)], colour=BLUE, thick=3)

    def name(self, name: str) -> None:
        """Write the stream's name at its left."""
        self.canvas.text(TRUNK - 8, self.canvas.y + 14, name.removeprefix(BLOCK), at="end", bold=True)
        self.canvas.y += 10

    def branch(self, group: list[Application]) -> None:
        """Draw a norm or a sublayer at the right, fed from the stream or from the one above."""
        canvas, top = self.canvas, self.canvas.y
        feed = [(BRANCH, top)] if self.branched else [(TRUNK, top + 4), (BRANCH, top + 4)]
        canvas.y = top + 20
        canvas.arrow([*feed, (BRANCH, canvas.y)])
        self.branched = True
        if not _sublayer(group[0]):
            canvas.box(LEFT, canvas.y, RIGHT - LEFT, 24)
            self.row(group[0])
            canvas.y += 4
            return
        name = _sublayer(group[0])
        height = 28 + ROW * len(group)
        canvas.box(LEFT, canvas.y, RIGHT - LEFT, height)
        canvas.box(LEFT, canvas.y, RIGHT - LEFT, 24, SUBLAYERS[name], fill=VIOLET, bold=True)
        canvas.y += 26
        for application in group:
            self.row(application)
        canvas.y += 2

    def row(self, application: Application) -> None:
        """Write an application's name in the code, its equation, and its weights."""
        canvas, name = self.canvas, application.name.rpartition(".")[2]
        canvas.text(LEFT + 8, canvas.y + 16, name, size=SMALL, bold=True)
        canvas.text(LEFT + 72, canvas.y + 16, title_of(application), size=SMALL)
        weights = [t.name.rpartition(".")[2] for t in application.inputs if t.requires_grad and t.node is None]
        if weights:
            words = ", ".join(weights)
            width = text_width(words, SMALL) + 4
            canvas.box(RIGHT - width - 4, canvas.y + 3, width, 17, words, fill=GREEN, size=SMALL)
        canvas.y += ROW

    def join(self, residual: Application) -> None:
        """Add the branch to the stream."""
        canvas = self.canvas
        y = canvas.y + 20
        canvas.arrow([(BRANCH, canvas.y), (BRANCH, y), (TRUNK + 11, y)])
        self.down_to(y - 10)
        canvas.ring(TRUNK, y, 10, "+", line=BLUE)
        self.trunk, self.branched, canvas.y = y + 10, False, y + 8
        self.name(residual.name)

    def norm_on_trunk(self, norm: Application) -> None:
        """Normalise the stream itself."""
        canvas = self.canvas
        canvas.y += 14
        self.down_to(canvas.y)
        canvas.box(4, canvas.y, 2 * (TRUNK - 4), 40)
        canvas.text(TRUNK, canvas.y + 16, norm.name.removeprefix(BLOCK), size=SMALL, at="middle", bold=True)
        canvas.text(TRUNK, canvas.y + 32, title_of(norm), size=SMALL, at="middle")
        self.trunk = canvas.y + 40
        canvas.y += 44


PRE_TITLE = Words("A pre-norm block, as in GPT-2", "前置归一化的块，如 GPT-2")
POST_TITLE = Words("A post-norm block, as in the first Transformer", "后置归一化的块，如最初的 Transformer")


@picture(PRE_TITLE, partial(in_words, PRE))
def block(canvas: Canvas) -> None:
    """The block of the default model."""
    _Drawing(canvas, block_of(pass_through(PRE, 1, 2)), PRE_TITLE).draw()


@picture(POST_TITLE, partial(in_words, POST))
def post_norm_block(canvas: Canvas) -> None:
    """The block with norms after the sums, with ReLU and without a mask."""
    _Drawing(canvas, block_of(pass_through(POST, 1, 2)), POST_TITLE).draw()
