"""The training loop and the part that generation shares, with the numbers of one update of the four-column GPT."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from byhand.book.lessons.examples.paper_gpt import OPTIMIZER, RATE
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SIZE, VIOLET
from byhand.book.pictures.passes import TARGETS, TOKENS, next_token, paper_model
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Arrow, Box, Space
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, Link, heading
from byhand.book.words.language import Words
from byhand.config import OptimConfig
from byhand.optim import AdamW


class Update(NamedTuple):
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


@scene("Training and generation share the forward pass", "训练与生成使用同一个前向传播与同一组参数")
def training_loop() -> Column:
    """Training on the left, generation on the right, the forward pass and the parameters in both."""
    u, text, wanted = one_update(), " ".join(map(str, TOKENS)), " ".join(map(str, TARGETS))
    clipped, both, left = (
        (f"{u.norm} ≤ {u.largest}", f"{u.norm} → {u.largest}")[float(u.norm) > float(u.largest)],
        _pair(Arrow(), Arrow()),
        _pair(Arrow(), Space()),
    )
    after = Words(f"The same batch now has loss {u.after}", f"同一批次现在的损失为 {u.after}")
    forward = Words("with the parameters, the same in both", "使用同一组参数")
    lines = [
        _pair(heading(Words("Training", "训练")), heading(Words("Generation", "生成"))),
        _pair(Box([Words("batch", "批次"), f"x = {text}, y = {wanted}"], VIOLET, name="batch"),
              Box([Words("text so far", "已有的文本"), text], VIOLET, name="text")), both,
        Box([Words("forward pass", "前向传播"), forward], GREEN), both,
        _pair(Box([Words("loss", "损失"), u.before], BLUE),
              Box([Words("probabilities", "概率"), " ".join(u.chances)], BLUE)), both,
        _pair(Box([Words("backward", "反向传播"), Words("gradient per parameter", "全部参数的梯度")], RUST),
              Box([Words("draw and append", "抽取并接上"), str(u.drawn)], VIOLET, name="drawn")), left,
        _pair(Box([Words("clip", "裁剪"), Words(f"norm {clipped}", f"范数 {clipped}")], RUST), Space()), left,
        _pair(Box(["AdamW", Words("new parameters", "新的参数")], GREEN, name="adamw"), Caption(after, size=SIZE)),
    ]  # fmt: skip
    ways = ("adamw", "batch", "left"), ("drawn", "text", "right")
    links = [Link(start, end, side, side, thick=2, away=15) for start, end, side in ways]
    return Column([Column(lines, gap=3, pad=18)], links=links)


def _pair(left: Figure, right: Figure) -> Across:
    return Across([left, right], gap=24, widths=(None, None))
