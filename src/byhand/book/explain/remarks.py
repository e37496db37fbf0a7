"""Notes beside an explanation, in both languages: where a given number comes from, and why one is zero."""

from __future__ import annotations

from collections.abc import Sequence

from byhand.book.explain.explanation import Note
from byhand.book.lessons.lesson import Words
from byhand.book.numbers.arithmetic import decimal
from byhand.engine import BackwardStep, Tensor
from byhand.engine.terms import Index

PARAMETER = Note(
    "a parameter: training made it. With --grad: why it moves; NAME.update: how far one step moves it.",
    "参数：由训练得到。加 --grad 看它为何移动；名称后加 .update 看下一步移动多少。",
    "parameter",
)
GIVEN = Note("given: part of the input.", "给定：输入的一部分。", "given")
ROOT = Note("the loss itself: its gradient is 1.", "损失本身：它的梯度是 1。", "loss")
CANCELLED = Note(
    "zero up to rounding: the terms cancel, and what is left of them is only their rounding.",
    "除舍入误差外为零：各项互相抵消，剩下的只是舍入误差。",
    "cancelled",
)
UNREACHED = Note(
    "zero: nothing that it changes has a gradient.", "为零：它能改变的数都没有梯度（梯度全为零）。", "unreached"
)


def masked(index: Index) -> Note:
    """Say why a weight or the gradient of a score is exactly zero."""
    t, s = index[-2:]
    return Note(
        f"masked: query {t} must not see key {s}: the weight is exactly 0, and the score goes unused.",
        f"已被掩码：查询 {t} 不能看到其后的键 {s}。权重恰好为 0，分数没有被用到。",
        "masked",
        {"query": t, "key": s},
    )


def update(t: int, lr: float, norm: float | None, limit: float) -> Note:
    """Say which step an update belongs to; `norm` is the gradients' if it is clipped to `limit`."""
    en, zh = f"step {t} with lr {decimal(lr)}", f"第 {t} 步，学习率 {decimal(lr)}"
    if norm is not None:
        en += f"; gradients are clipped from {decimal(norm)} to {decimal(limit)}"
        zh += f"；梯度的范数从 {decimal(norm)} 裁剪到 {decimal(limit)}"
    facts = {"step": t, "lr": lr} | ({} if norm is None else {"gradient_norm": norm, "clipped_to": limit})
    return Note(f"{en}.", f"{zh}。", "update", facts)


def why_zero(uses: Sequence[BackwardStep], tensor: Tensor, index: Index) -> Words:
    """Say why no share of a gradient reaches an element: its row is not read, it is masked, or what it changes."""
    for step in uses:
        inputs = step.node.inputs
        slot = next(k for k, t in enumerate(inputs) if t is tensor)
        match step.node.equation.name, slot:
            case "embedding", 0 if index[0] not in inputs[1].data:
                return Words(
                    f"zero: token {index[0]} does not occur in the input, so its row is not read.",
                    f"为零：输入中没有词元 {index[0]}，它的那一行没有被读取。",
                )
            case "add_positional", 1 if index[0] >= (n := inputs[0].shape[-2]):
                return Words(
                    f"zero: the input has {n} positions, so the row of position {index[0]} is not read.",
                    f"为零：输入只有 {n} 个位置，位置 {index[0]} 的那一行没有被读取。",
                )
            case "causal_softmax", 0:
                queries, keys = tensor.shape[-2:]
                seen = index[-2] + keys - queries + 1
                if index[-1] >= seen:
                    return masked(index)
                if seen == 1:
                    return Words(
                        f"zero: query {index[-2]} sees one key only, whose weight is 1 whatever the score.",
                        f"为零：查询 {index[-2]} 只能看到一个键，无论分数是多少，权重总是 1。",
                    )
    return UNREACHED
