"""Generated numbers of the paper GPT: what its parts contribute, what its update changes, and what-if exercises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from byhand.book.lessons.changes import with_changes
from byhand.book.lessons.examples.paper_gpt import (
    CHOICES,
    CONFIG,
    GIVEN,
    RATE,
    VOCABULARY,
    WEIGHTS,
    config_of,
    model_of,
    weights_of,
)
from byhand.book.lessons.letters import called
from byhand.book.lessons.naming import short
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.markdown import Rows, decimals, table_block
from byhand.book.pictures.passes import TARGETS, TOKENS, paper_model, pass_of
from byhand.book.words.language import Words
from byhand.equations.softmax import softmax
from byhand.model import TinyGPT
from byhand.optim import AdamW

ATTENTION, MLP = "blocks.0.attn.w_proj", "blocks.0.mlp.w_out"  # at 0, the sublayer adds nothing to the stream
HEAD = ("|".join(f"p({word.en})" for word in VOCABULARY), "|".join(f"p({word.zh})" for word in VOCABULARY))
STEP = 0.01  # by which weights are nudged
NUDGED = (
    ("lm_head.b", (2,)), ("blocks.0.mlp.b_fc", (1,)), ("blocks.0.attn.w_qkv", (1, 8)), ("wte", (0, 3)),
    ("wte", (2, 2)),
)  # fmt: skip
GROUPS = {
    Words("embeddings", "嵌入"): ("wte", "wpe"),
    Words("attention", "注意力"): ("blocks.0.attn",),
    Words("MLP", "前馈网络"): ("blocks.0.mlp",),
    Words("head", "语言模型头"): ("lm_head",),
}


def model_with(changed: Mapping[str, Any]) -> TinyGPT:
    """Return the paper GPT with some weights changed."""
    return model_of(CONFIG, {name: array(w) for name, w in WEIGHTS.items()} | {**changed})


def chances(model: TinyGPT, tokens: Iterable[int] = TOKENS) -> np.ndarray:
    """Return the probabilities of the next word (T, V) at each position."""
    return softmax.forward(model.forward_logits([[*tokens]]).data[0])[0]


def updated(rate: float) -> TinyGPT:
    """Return the paper GPT after its first update at this learning rate."""
    model = paper_model()
    model.loss([TOKENS], [TARGETS]).backward()
    AdamW(lr=rate).step(model.parameters())
    return model


@table_block("Id|Word", "编号|词")
def vocabulary() -> Rows:
    """The paper GPT's words."""
    yield from enumerate(VOCABULARY)


@table_block(f"What adds to the stream|{HEAD[0]}|Loss", f"哪些部分写入残差流|{HEAD[1]}|损失")
def without_parts() -> Rows:
    """The prediction at the last position, and the loss of all, with and without attention and MLP."""
    for words, missing in (
        (Words("neither", "两者都不写"), (ATTENTION, MLP)),
        (Words("the MLP alone", "只有前馈网络"), (ATTENTION,)),
        (Words("attention alone", "只有注意力"), (MLP,)),
        (Words("both", "两者都写"), ()),
    ):
        yield words, *_predicted(model_with({name: array(WEIGHTS[name]) * 0 for name in missing}))


def _predicted(model: TinyGPT) -> tuple[str, ...]:
    return *map(decimals, chances(model)[-1]), decimals(model.loss([TOKENS], [TARGETS]).item())


@table_block("Weights|Gradient times change, summed", "权重|梯度乘以改变量，再求和")
def foretold() -> Rows:
    """What the gradient predicts of the loss after the first update, by part of the model, and what comes."""
    before, after = pass_of("paper-gpt"), updated(RATE)
    whole = 0.0
    for words, names in GROUPS.items():
        change = sum(
            float((before.by_name[name] * (parameter.data - before.trace.values[name])).sum())
            for name, parameter in after.parameters().items()
            if name.startswith(names)
        )
        whole += change
        yield words, _signed(change)
    yield Words("all, predicted", "合计：按梯度估计的变化"), _signed(whole)
    real = after.loss([TOKENS], [TARGETS]).item() - before.trace.result.data.item()
    yield Words("the real change", "实际的变化"), _signed(real)


@table_block(f"When|{HEAD[0]}", f"情形|{HEAD[1]}")
def paper_changed(position: str, *changes: str) -> Rows:
    """The probabilities at a position as they are, and with changes as `byhand work paper-gpt --set` takes them."""
    for words, start in (
        (Words("before", "改变前"), GIVEN),
        (Words("after", "改变后"), with_changes(GIVEN, changes, CHOICES)),
    ):
        model = model_of(config_of(start), {name: array(w) for name, w in weights_of(start).items()})
        tokens = [int(token) for token in start["text"][:-1]]
        yield words, *map(decimals, chances(model, tokens)[int(position)])


@table_block("Learning rate|Loss after the update|Fall", "学习率|更新后的损失|下降")
def rates() -> Rows:
    """The loss after the first update at several learning rates."""
    before = pass_of("paper-gpt").trace.result.data.item()
    for times in (1, 2, 5, 10, 20):
        after = updated(times * RATE).loss([TOKENS], [TARGETS]).item()
        yield f"{times * RATE:g}", decimals(after), _signed(before - after)


def _fifth(number: float) -> str:
    return f"{number + 0.0:.5f}".replace("-", "−")


def _signed(number: float) -> str:
    return decimals(number).replace("-", "−")


@table_block(f"Weight|Gradient|Loss, {STEP:g} more|Loss, {STEP:g} less|Difference / {2 * STEP:g}",
             f"权重|梯度|加 {STEP:g} 后的损失|减 {STEP:g} 后的损失|差 / {2 * STEP:g}")  # fmt: skip
def paper_nudged() -> Rows:
    """Gradients of some weights beside the losses with that weight a little larger and a little smaller."""
    gradients = pass_of("paper-gpt").by_name
    for name, index in NUDGED:
        above, below = (_nudged_loss(name, index, step) for step in (STEP, -STEP))
        slope = (above - below) / (2 * STEP)
        at = f"`{called(short(name))}[{','.join(map(str, index))}]`"
        yield at, _fifth(gradients[name][index]), f"{above:.8f}", f"{below:.8f}", _fifth(slope)


def _nudged_loss(name: str, index: tuple[int, ...], step: float) -> float:
    weight = array(WEIGHTS[name]).copy()
    weight[index] += step
    return model_with({name: weight}).loss([TOKENS], [TARGETS]).item()
