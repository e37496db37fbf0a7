"""Remarks about an answer: what a number is, why a gradient is zero, which step an update is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.book.entries.contract import ENTRIES
from byhand.book.numbers.arithmetic import decimal
from byhand.book.words.language import Note
from byhand.engine.terms import leaves
from byhand.tracing.answers import Answer
from byhand.tracing.gradients import Gradients

NOTES = {
    note.code: note
    for note in (
        Note(
            "a parameter: training made it. With --grad: why it moves; NAME.update: how far one step moves it.",
            "参数：由训练得到。加 --grad 看它的梯度；名称后加 .update 看下一步更新多少。",
            "parameter",
        ),
        Note("given: part of the input.", "已知：输入的一部分。", "given"),
        Note("the loss itself: its gradient is 1.", "损失本身：它的梯度是 1。", "loss"),
        Note(
            "zero up to rounding: the terms cancel, and what is left of them is only their rounding.",
            "除舍入误差外为零：各项互相抵消，剩下的只是舍入误差。",
            "cancelled",
        ),
    )
}
UNREACHED = Note(
    "zero: nothing that it changes has a gradient.", "为零：它能改变的数都没有梯度（梯度全为零）。", "unreached"
)


def note_of(answer: Answer) -> Note | None:
    """Return the remark on a value or an update, if there is one."""
    code = answer.facts.get("code", "")
    if code == "update":
        return _of_update(answer.facts)
    if code == "draw":
        return _of_draw(answer.facts)
    if answer.term is None:
        return NOTES.get(code)
    remark = ENTRIES[answer.equations[0]].remark
    return remark(answer.term, answer.index) if remark else None


def note_of_gradient(answer: Answer, gradients: Gradients) -> Note | None:
    """Return why a gradient is zero, in the words of an equation that reads the element, if its entry has any."""
    code = answer.facts.get("code", "")
    if code not in ("zero", "cancelled"):
        return NOTES.get(code)
    tensor = gradients.trace.tensor(answer.name)
    for step in gradients.uses(tensor):
        inputs, why_zero = step.node.inputs, ENTRIES[step.node.equation.name].why_zero
        slot = next(k for k, t in enumerate(inputs) if t is tensor)
        words = why_zero(tuple(t.data for t in inputs), slot, answer.index, **step.node.static) if why_zero else None
        if words:
            return words if isinstance(words, Note) else Note(words.en, words.zh, "zero")
    if code == "cancelled":
        return NOTES[code]
    cotangents = (leaf for leaf in leaves(answer.term) if leaf.source) if answer.term else ()
    reached = any(leaf.value and answer.origins[leaf.source[0]].get("gradient") for leaf in cotangents if leaf.source)
    return None if reached else UNREACHED


def _of_draw(facts: Mapping[str, Any]) -> Note:
    """Say how the token was drawn."""
    if "u" not in facts:
        return Note("temperature 0: the token with the largest logit.", "温度为 0：取 logit 最大的词元。", "draw")
    u, before, with_it = (decimal(facts[name]) for name in ("u", "sum_before", "sum"))
    en = (
        f"drawn with u = {u}: the first token at which the running sum of the probabilities is above u; it is "
        f"{before} before this token, {with_it} with it."
    )
    zh = f"用 u = {u} 抽取：累计概率第一个超过 u 的词元；不含它为 {before}，含它为 {with_it}。"
    return Note(en, zh, "draw", {name: facts[name] for name in facts if name != "code"})


def _of_update(facts: Mapping[str, Any]) -> Note:
    """Name the step, its learning rate, and the clipping if it acts."""
    t, lr = facts["step"], decimal(facts["lr"])
    en, zh = f"step {t} with lr {lr}", f"第 {t} 步，学习率 {lr}"
    if "clipped_to" in facts:
        norm, limit = decimal(facts["gradient_norm"]), decimal(facts["clipped_to"])
        en += f"; gradients are clipped from {norm} to {limit}"
        zh += f"；梯度的范数从 {norm} 裁剪到 {limit}"
    return Note(f"{en}.", f"{zh}。", "update", {name: facts[name] for name in facts if name != "code"})
