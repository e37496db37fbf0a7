"""The training loop and the part that generation shares, with the numbers of one update of the four-column GPT."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from byhand.book.lessons.examples.paper_gpt import OPTIMIZER, RATE
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SMALL, VIOLET, WHITE, Canvas
from byhand.book.pictures.passes import TARGETS, TOKENS, next_token, paper_model
from byhand.book.pictures.picture import picture
from byhand.book.words.language import Said, Words
from byhand.config import OptimConfig
from byhand.optim import AdamW

LEFT, RIGHT, WIDE, HIGH, DOWN = 24.0, 212.0, 164.0, 40.0, 16.0


@dataclass(frozen=True)
class Update:
    """One update: loss before and after, the gradient's norm and the largest allowed, and the next token."""

    before: str
    after: str
    norm: str
    largest: str
    chances: tuple[str, ...]
    drawn: int


@lru_cache(maxsize=1)
def one_update() -> Update:
    """Make an update of the four-column GPT, clipped as by default."""
    model = paper_model()
    chances, drawn = next_token(model.forward_logits([TOKENS]).data[0, -1])
    loss, largest = model.loss([TOKENS], [TARGETS]), OptimConfig().grad_clip
    loss.backward()
    betas = OPTIMIZER["beta1"], OPTIMIZER["beta2"]
    optimizer = AdamW(lr=RATE, betas=betas, eps=OPTIMIZER["eps"], weight_decay=OPTIMIZER["weight_decay"])
    norm = optimizer.clipped_step(model.parameters(), largest)
    after = model.loss([TOKENS], [TARGETS])
    before, now, whole, most = (decimal(float(x), 4) for x in (loss.item(), after.item(), norm, largest))
    return Update(before, now, whole, most, tuple(f"{100 * chance:.0f}%" for chance in chances), drawn)


def in_words(lang: str) -> str:
    """Say both ways."""
    u, text, wanted = one_update(), _ids(TOKENS), _ids(TARGETS)
    return Words(
        f"Training: batch x = {text}, y = {wanted} → forward → loss {u.before} → backward → clip, norm {u.norm} → "
        f"{u.largest} → AdamW → the next batch; after this update the loss is {u.after}. Generation: text {text} → "
        f"forward → probabilities {' '.join(u.chances)} → draw {u.drawn} → append → forward. Both use the same "
        "forward pass and parameters.",
        f"训练：批次 x = {text}，y = {wanted} → 前向 → 损失 {u.before} → 反向 → 裁剪，范数 {u.norm} → {u.largest} → "
        f"AdamW → 下一个批次；更新之后损失为 {u.after}。生成：文本 {text} → 前向 → 概率 {' '.join(u.chances)} → 抽取 "
        f"{u.drawn} → 接到后面 → 前向。两者使用同一个前向传播与同一组参数。",
    ).said(lang)


def _ids(tokens: list[int]) -> str:
    return " ".join(map(str, tokens))


@picture(Words("The training loop, and what generation uses of it", "训练循环，以及生成用到的部分"), in_words)
def training_loop(canvas: Canvas) -> None:
    """Training on the left, generation on the right, the forward pass and the parameters in both."""
    u = one_update()
    canvas.text(LEFT, 14, Words("Training", "训练"), bold=True)
    canvas.text(RIGHT, 14, Words("Generation", "生成"), bold=True)
    canvas.y = top = 24.0
    batch = f"x = {_ids(TOKENS)}, y = {_ids(TARGETS)}"
    _box(canvas, LEFT, Words("batch", "批次"), batch, VIOLET)
    _box(canvas, RIGHT, Words("text so far", "已有的文本"), _ids(TOKENS), VIOLET)
    _on(canvas, LEFT, RIGHT)
    forward = canvas.y
    canvas.box(LEFT, forward, RIGHT + WIDE - LEFT, HIGH, fill=GREEN)
    middle = (LEFT + RIGHT + WIDE) / 2
    said = Words("with the parameters, the same in both", "使用同一组参数")
    canvas.text(middle, forward + 17, Words("forward pass", "前向传播"), at="middle", colour=WHITE, bold=True)
    canvas.text(middle, forward + 33, said, at="middle", colour=WHITE, size=SMALL)
    _on(canvas, LEFT, RIGHT)
    _box(canvas, LEFT, Words("loss", "损失"), u.before, BLUE)
    _box(canvas, RIGHT, Words("probabilities", "概率"), " ".join(u.chances), BLUE)
    _on(canvas, LEFT, RIGHT)
    _box(canvas, LEFT, Words("backward", "反向传播"), Words("gradient per parameter", "全部参数的梯度"), RUST)
    _box(canvas, RIGHT, Words("draw and append", "抽取并接上"), str(u.drawn), VIOLET)
    _back(canvas, RIGHT + WIDE, canvas.width - 6, canvas.y + HIGH / 2, top + HIGH / 2)
    _on(canvas, LEFT)
    clipped = f"{u.norm} → {u.largest}"
    _box(canvas, LEFT, Words("clip", "裁剪"), Words(f"norm {clipped}", f"范数 {clipped}"), RUST)
    _on(canvas, LEFT)
    _box(canvas, LEFT, "AdamW", Words("new parameters", "新的参数"), GREEN)
    _back(canvas, LEFT, 8, canvas.y + HIGH / 2, top + HIGH / 2)
    lines = Words("The same batch now", "同一批次现在的"), Words(f"has loss {u.after}", f"损失为 {u.after}")
    canvas.text_lines(RIGHT, canvas.y + 16, lines, 18)
    canvas.y += HIGH + 4


def _box(canvas: Canvas, x: float, name: Said, below: Said, fill: str) -> None:
    """Draw a box with a name and numbers; `canvas.y` stays its top."""
    canvas.box(x, canvas.y, WIDE, HIGH, fill=fill)
    canvas.text(x + WIDE / 2, canvas.y + 17, name, at="middle", colour=WHITE, bold=True)
    canvas.text(x + WIDE / 2, canvas.y + 33, below, at="middle", colour=WHITE, size=SMALL)


def _on(canvas: Canvas, *columns: float) -> None:
    """Draw an arrow down below each column's box."""
    canvas.y += HIGH
    for x in columns:
        canvas.arrow([(x + WIDE / 2, canvas.y + 2), (x + WIDE / 2, canvas.y + DOWN - 2)])
    canvas.y += DOWN


def _back(canvas: Canvas, edge: float, side: float, low: float, high: float) -> None:
    """Draw the way back up, along a side."""
    canvas.arrow([(edge, low), (side, low), (side, high), (edge, high)], thick=2)
