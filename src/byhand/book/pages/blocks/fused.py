"""Generated table of the loops runtime: which equations of the example model run as one kernel, and why."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.book.pages.blocks.markdown import block, link_equation, table
from byhand.book.pages.blocks.shapes import EXAMPLE, TARGETS, TOKENS
from byhand.book.words.language import COMMA, Words
from byhand.engine.graph.record import record
from byhand.model import TinyGPT
from byhand.runtimes.loops.lower.fusion import groups_of, rules_of
from byhand.runtimes.loops.pattern.rules import Group

WHY: dict[str, Words | str] = {
    "embeddings": Words("both rows are read in one pass", "两张表的行在同一遍中读取"),
    "layer_norm": "",
    "linear": "",
    "attention": Words(
        "scores and weights of a few queries stay in the first cache; no head is copied",
        "几个查询的分数与权重一直留在一级缓存；不必为拆分各头而复制",
    ),
    "linear + residual": Words("the product is accumulated onto bias and stream", "累加乘积时以偏置与残差流为初值"),
    "linear + gelu": Words("bias, activation and its slope in one pass", "偏置、激活函数及其斜率在同一遍中算完"),
    "cross-entropy with its derivative": Words(
        "the logits become their own gradient in place", "logits 原地换成它的梯度"
    ),
}


def groups() -> list[Group]:
    """Return the groups of the example model's training step, in the order in which they run forward."""
    model = TinyGPT(EXAMPLE)
    graph = record(model.loss_of, tokens=np.array(TOKENS), targets=np.array(TARGETS))
    return groups_of(graph, rules_of("train"))


@block
def fused(page: Path, lang: str) -> str:
    """Each group of equations that one rule turns into kernels, with the reason if it has several."""
    found = groups()
    rows = [
        (
            n,
            COMMA.said(lang).join(link_equation(page, node.equation.name, lang) for node in group.nodes),
            WHY[group.rule.name],
        )
        for n, group in enumerate(found, 1)
    ]
    count = sum(len(group.nodes) for group in found)
    said = Words(
        f"{count} applications of equations in {len(found)} groups:", f"{count} 次公式运算，分成 {len(found)} 组："
    ).said(lang)
    return f"{said}\n\n{table(Words('|Equations|Why together', '|公式|为什么合在一起'), rows, lang)}"
