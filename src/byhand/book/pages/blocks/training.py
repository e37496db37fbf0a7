"""Generated numbers of training: batches, the meaning of a loss, clipping, the schedule, updates, a whole run."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np

from byhand.book.lessons.examples import sampling
from byhand.book.lessons.examples.paper_gpt import VOCABULARY
from byhand.book.pages.blocks.markdown import Rows, block, decimals, table, table_block, vector
from byhand.book.pictures.cross_entropy_curve import loss as loss_of
from byhand.book.pictures.passes import TARGETS, TOKENS, paper_model
from byhand.book.words.language import Words
from byhand.clipping import clip_gradients, gradient_norm
from byhand.config import ModelConfig, OptimConfig
from byhand.engine import Tensor
from byhand.equations.softmax import softmax
from byhand.generation import generate
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.runtimes.sampling import Sampling
from byhand.schedule import learning_rate
from byhand.tracing.sampling import drawn_with
from byhand.tracing.trace import Trace

TEXT = b"to be"
LOSSES = {
    5.55: Words("a new model", "刚初始化的模型"),
    2.5: "",
    1.77: Words("the run in the README", "README 中的那次训练"),
    1.5: "",
    math.log(2): Words("a coin toss between two bytes", "抛硬币，在两个字节中选一个"),
    0.1: Words("nearly certain", "几乎确定"),
}
RATE = 0.05  # of the small run
REVERSED = (0, 2, 0, 1)  # its text: no gain no pain, the paper GPT's words the other way round
STEPS = 2000  # as in the picture of the schedule
RUN = (0, 1, 10, 50, 100)  # updates of the small run at which its numbers are shown


@table_block("t|Context|x[t]|y[t]|Target", "t|上文|x[t]|y[t]|目标")
def windows() -> Rows:
    """The predictions that one window of a text asks for, position by position."""
    shown = TEXT.decode().replace(" ", "␣")
    for t in range(len(TEXT) - 1):
        yield t, f"`{shown[: t + 1]}`", TEXT[t], TEXT[t + 1], f"`{shown[t + 1]}`"


@table_block(
    "Nats|Bits|Candidates|Probability of the true byte|Compressed size|",
    "奈特|比特|候选数|真实字节的概率|压缩后大小|",
)
def loss_meaning() -> Rows:
    """Losses in nats as bits, as equally likely candidates, as a probability, and as a share of the text's size."""
    chance = math.log(ModelConfig().vocab_size)
    for nats, words in ({chance: Words("all bytes equally likely", "所有字节等可能")} | LOSSES).items():
        candidates, p = f"{math.exp(nats):,.1f}", f"{math.exp(-nats):.4f}"
        yield f"{nats:.4g}", f"{nats / math.log(2):.3f}", candidates, p, f"{nats / chance:.1%}", words


@table_block("Predicted p|Target y|−Σ y ln p", "预测 p|目标 y|−Σ y ln p")
def loss_by_probability() -> Rows:
    """The loss of one prediction for a few probabilities of the true class, from the equation cross-entropy."""
    for p in (0.99, 0.7, 0.5, 0.1, 0.01):
        yield f"[{p:g}, {1 - p:.2g}]", "[1, 0]", decimals(loss_of(p))


@table_block("Gradient|Norm|Factor|Clipped", "梯度|范数|系数|裁剪后")
def clipping() -> Rows:
    """Gradients of two numbers before and after clipping to the default global norm."""
    most = OptimConfig().grad_clip
    for given in ([3.0, 4.0], [0.3, 0.4]):
        g = {"w": np.array(given)}
        norm = gradient_norm(g)
        worked = f"√({' + '.join(f'{x:g}²' for x in given)}) = {norm:g}"
        factor = f"{most:g} / {norm:g} = {most / norm:g}" if norm > most else "1"
        yield vector(given), worked, factor, vector(clip_gradients(g, norm, most)["w"])


@table_block(f"Update of {STEPS}|Learning rate|", f"第几次更新，共 {STEPS} 次|学习率|")
def schedule() -> Rows:
    """The default learning rate of some updates of a run."""
    config = OptimConfig()
    warm = config.warmup_steps
    for n, words in (
        (1, Words("the first update", "第一次更新")),
        (warm // 2, Words("in the middle of the warm-up", "预热中途")),
        (warm, Words("warm-up done: the highest", "预热结束：最高")),
        ((warm + STEPS) // 2 + 1, Words("halfway down the cosine", "余弦下降的中点")),
        (STEPS, Words("the last update", "最后一次更新")),
    ):
        yield n, f"{learning_rate(config, n - 1, STEPS):.6f}", words


@table_block("Gradient|Change of the weight", "梯度|权重的变化")
def first_update() -> Rows:
    """The first update of AdamW for gradients of very different size: always about lr."""
    for g in (100.0, 1.0, 0.001, -0.001):
        parameter = TinyGPT(ModelConfig(2, 1, 1), dtype="float64").parameters()["wte"]
        before = parameter.data.copy()
        parameter.grad = np.full_like(before, g)
        AdamW(lr=OptimConfig().lr, weight_decay=0.0).step({"wte": parameter})
        yield f"{g:g}", decimals((parameter.data - before)[0, 0])


@table_block("Gradient of `lm_head.b`|0|1|2", "`lm_head.b` 的梯度|0|1|2")
def accumulated() -> Rows:
    """The gradient of the head's bias for two sequences: each alone, their mean, and both as one batch."""
    for words, g in accumulation():
        yield words, *map(decimals, g)


def accumulation() -> list[tuple[Words, np.ndarray]]:
    """Return the gradients that `accumulated` shows, with their names."""
    tokens, targets = [TOKENS, [1, 0, 2]], [TARGETS, [0, 2, 1]]

    def gradient(rows: slice) -> np.ndarray:
        model = paper_model()
        model.loss(tokens[rows], targets[rows]).backward()
        return np.asarray(model.parameters()["lm_head.b"].grad)

    first, second = gradient(slice(0, 1)), gradient(slice(1, 2))
    return [
        (Words("first micro-batch", "第一个微批"), first),
        (Words("second micro-batch", "第二个微批"), second),
        (Words("their mean", "两者的平均"), (first + second) / 2),
        (Words("one batch of both", "合成一个批次"), gradient(slice(None))),
    ]


@block
def small_run(page: Path, lang: str) -> str:
    """A whole training run of the paper GPT on four words: loss and probabilities of the targets as updates go by."""
    rows = [(n, decimals(loss), f"{math.exp(loss):.3f}", *map(decimals, p)) for n, loss, p in trained()[0]]
    targets = "|".join(f"p({VOCABULARY[y].said(lang)})" for y in REVERSED[1:])
    shown = table(Words(f"Updates|Loss|Candidates|{targets}", f"更新次数|损失|候选数|{targets}"), rows, lang)
    said = Words(
        f"AdamW at a constant learning rate of {RATE}, without weight decay.",
        f"AdamW，学习率恒为 {RATE}，没有权重衰减。",
    ).said(lang)
    return f"{shown}\n\n{said}"


@table_block("Model|Prompt|Continuation", "模型|提示词|续写")
def small_text() -> Rows:
    """The text that the small run generates, always taking the likeliest word."""
    _, before, after = trained()
    yield Words("before training", "训练前"), VOCABULARY[REVERSED[0]], _in_words(before)
    yield Words("after training", "训练后"), VOCABULARY[REVERSED[0]], _in_words(after)


def _in_words(text: list[int]) -> Words:
    return Words(" ".join(VOCABULARY[token].en for token in text), " ".join(VOCABULARY[token].zh for token in text))


@cache
def trained() -> tuple[list[tuple[int, float, np.ndarray]], list[int], list[int]]:
    """Train the paper GPT anew; return loss and targets' probabilities at RUN, what it writes before and after."""
    model, optimizer = paper_model(), AdamW(lr=RATE, weight_decay=0.0)
    tokens, targets = REVERSED[:-1], REVERSED[1:]
    found, before = [], _written(model)
    for n in range(RUN[-1] + 1):
        model.zero_grad()
        loss = model.loss([tokens], [targets])
        if n in RUN:
            p = softmax.forward(model.forward_logits([tokens]).data[0])[0]
            found.append((n, loss.item(), p[np.arange(len(targets)), targets]))
        loss.backward()
        if n < RUN[-1]:
            optimizer.step(model.parameters())
    return found, before, _written(model)


def _written(model: TinyGPT) -> list[int]:
    return list(generate(model, [REVERSED[0]], len(REVERSED) - 1, Sampling(temperature=0), runtime="numpy"))


@table_block(f"Token|Logit|p|Running sum|u = {sampling.UNIFORM}", f"词元|logit|p|累计|u = {sampling.UNIFORM}")
def one_draw() -> Rows:
    """Four logits, their probabilities and running sums, and the token that one uniform number picks."""
    trace = Trace.of(lambda: softmax(Tensor(np.array(sampling.LOGITS, dtype=float)), name="p"))
    p, token = trace.result.data, int(drawn_with(sampling.UNIFORM, trace).value)
    sums = np.cumsum(p)
    for v, logit in enumerate(sampling.LOGITS):
        yield v, f"{logit}", decimals(p[v]), decimals(sums[v]), "←" if v == token else ""
