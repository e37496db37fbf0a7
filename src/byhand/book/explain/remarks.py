"""Notes beside an explanation, in both languages: where a given number comes from, and why one is zero."""

from __future__ import annotations

from collections.abc import Sequence

from byhand.book.entries.contract import ENTRIES
from byhand.book.numbers.arithmetic import decimal
from byhand.book.words.language import Note, Words
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


def update(t: int, lr: float, norm: float | None, limit: float) -> Note:
    """Say which step an update belongs to; `norm` is the gradients' if it is clipped to `limit`."""
    en, zh = f"step {t} with lr {decimal(lr)}", f"第 {t} 步，学习率 {decimal(lr)}"
    if norm is not None:
        en += f"; gradients are clipped from {decimal(norm)} to {decimal(limit)}"
        zh += f"；梯度的范数从 {decimal(norm)} 裁剪到 {decimal(limit)}"
    facts = {"step": t, "lr": lr} | ({} if norm is None else {"gradient_norm": norm, "clipped_to": limit})
    return Note(f"{en}.", f"{zh}。", "update", facts)


def why_zero(uses: Sequence[BackwardStep], tensor: Tensor, index: Index) -> Words:
    """Say why nothing of a gradient reaches an element: the entry of an equation that reads it may know."""
    for step in uses:
        inputs = step.node.inputs
        explain = ENTRIES[step.node.equation.name].why_zero
        slot = next(k for k, t in enumerate(inputs) if t is tensor)
        words = explain(tuple(t.data for t in inputs), slot, index) if explain else None
        if words:
            return words
    return UNREACHED
