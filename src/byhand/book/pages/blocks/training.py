"""Generated numbers of training: batches, the meaning of a loss, clipping, the schedule, updates, a whole run."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np

from byhand.book.lessons.examples import paper_gpt_4, sampling
from byhand.book.lessons.examples.paper_gpt import BYTES, model_of
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.markdown import block, decimals, table
from byhand.book.words.language import Words
from byhand.clipping import clip_gradients, gradient_norm
from byhand.config import ModelConfig, OptimConfig
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.softmax import softmax
from byhand.generation import generate
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.runtimes.sampling import Sampling
from byhand.schedule import learning_rate

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
STEPS = 1000
RUN = (0, 1, 10, 50, 100)  # updates of the small run after which its numbers are shown


@block
def windows(page: Path, lang: str) -> str:
    """The predictions that one window of a text asks for, position by position."""
    shown = TEXT.decode().replace(" ", "␣")
    rows = [(t, f"`{shown[: t + 1]}`", TEXT[t], TEXT[t + 1], f"`{shown[t + 1]}`") for t in range(len(TEXT) - 1)]
    return table(Words("t|Context|x[t]|y[t]|Target", "t|上文|x[t]|y[t]|目标"), rows, lang)


@block
def loss_meaning(page: Path, lang: str) -> str:
    """Losses in nats as bits, as equally likely candidates, as a probability, and as a share of the text's size."""
    bits_of_byte = math.log2(ModelConfig().vocab_size)
    nothing = {math.log(ModelConfig().vocab_size): Words("all bytes equally likely", "所有字节等可能")}
    rows = [
        (
            f"{nats:.4g}",
            f"{nats / math.log(2):.3f}",
            f"{math.exp(nats):,.1f}",
            f"{math.exp(-nats):.4f}",
            f"{nats / math.log(2) / bits_of_byte:.1%}",
            words,
        )
        for nats, words in (nothing | LOSSES).items()
    ]
    head = Words(
        "Nats|Bits|Candidates|Probability of the true byte|Compressed size|",
        "奈特|比特|候选数|真实字节的概率|压缩后大小|",
    )
    return table(head, rows, lang)


@block
def loss_by_probability(page: Path, lang: str) -> str:
    """The loss of one prediction for a few probabilities of the true class, from the equation cross-entropy."""
    rows = []
    for p in (0.99, 0.7, 0.5, 0.1, 0.01):
        z = np.log([[p, 1 - p]])
        rows.append((f"[{p:g}, {1 - p:.2g}]", "[1, 0]", decimals(float(cross_entropy.forward(z, np.array([0]))[0]))))
    return table(Words("Predicted p|Target y|−Σ y log p", "预测 p|目标 y|−Σ y log p"), rows, lang)


@block
def clipping(page: Path, lang: str) -> str:
    """Gradients of two numbers before and after clipping to the default global norm."""
    most, rows = OptimConfig().grad_clip, []
    for given in ([3.0, 4.0], [0.3, 0.4]):
        g = {"w": np.array(given)}
        norm = gradient_norm(g)
        clipped = clip_gradients(g, norm, most)["w"]
        worked = f"√({' + '.join(f'{x:g}²' for x in given)}) = {norm:g}"
        factor = f"{most:g} / {norm:g} = {most / norm:g}" if norm > most else "1"
        rows.append((_vector(given), worked, factor, _vector(clipped)))
    head = Words("Gradient|Norm|Factor|Clipped", "梯度|范数|系数|裁剪后")
    return table(head, rows, lang)


@block
def schedule(page: Path, lang: str) -> str:
    """The default learning rate of some updates of a run."""
    config = OptimConfig()
    warm = config.warmup_steps
    words = {
        1: Words("the first update", "第一次更新"),
        warm // 2: Words("in the middle of the warm-up", "预热中途"),
        warm: Words("warm-up done: the highest", "预热结束：最高"),
        (warm + STEPS) // 2 + 1: Words("halfway down the cosine", "余弦下降的中点"),
        STEPS: Words("the last update", "最后一次更新"),
    }
    rows = [(n, f"{learning_rate(config, n - 1, STEPS):.6f}", what) for n, what in words.items()]
    head = Words(f"Update of {STEPS}|Learning rate|", f"第几次更新，共 {STEPS} 次|学习率|")
    return table(head, rows, lang)


@block
def first_update(page: Path, lang: str) -> str:
    """What the first update of AdamW subtracts, for gradients of very different size: always about lr."""
    rows = []
    for g in (100.0, 1.0, 0.001, -0.001):
        model = TinyGPT(ModelConfig(2, 1, 1), dtype="float64")
        parameter = model.parameters()["wte"]
        before = parameter.data.copy()
        parameter.grad = np.full_like(before, g)
        AdamW(lr=OptimConfig().lr, weight_decay=0.0).step({"wte": parameter})
        rows.append((f"{g:g}", f"{(parameter.data - before)[0, 0]:.6f}"))
    return table(Words("Gradient|Change of the weight", "梯度|权重的变化"), rows, lang)


@block
def accumulated(page: Path, lang: str) -> str:
    """The gradient of the head's bias for two sequences: each alone, their mean, and both as one batch."""
    rows = [(words, *map(decimals, g)) for words, g in accumulation()]
    head = Words("Gradient of `lm_head.b`|0|1|2|3", "`lm_head.b` 的梯度|0|1|2|3")
    return table(head, rows, lang)


def accumulation() -> list[tuple[Words, np.ndarray]]:
    """Return the gradients that `accumulated` shows, with their names."""
    tokens, targets = [[2, 1, 3], [0, 3, 1]], [[1, 3, 0], [3, 1, 2]]

    def gradient(rows: slice) -> np.ndarray:
        model = _paper_model()
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
    """A whole training run on the paper GPT's four bytes: loss and probabilities of the targets as updates go by."""
    rows = [(n, decimals(loss), f"{math.exp(loss):.3f}", *map(decimals, p)) for n, loss, p in trained()[0]]
    targets = "|".join(f"p({y})" for y in BYTES[1:])
    shown = table(Words(f"Updates|Loss|Candidates|{targets}", f"更新次数|损失|候选数|{targets}"), rows, lang)
    said = Words(f"AdamW at a constant learning rate of {RATE}.", f"AdamW，学习率恒为 {RATE}。").said(lang)
    return f"{shown}\n\n{said}"


@block
def small_text(page: Path, lang: str) -> str:
    """What the small run writes, always taking the likeliest byte."""
    before, after = trained()[1:]
    return table(
        Words("Model|Prompt|Continuation", "模型|提示词|续写"),
        [
            (Words("before training", "训练前"), [BYTES[0]], before),
            (Words("after training", "训练后"), [BYTES[0]], after),
        ],
        lang,
    )


@cache
def trained() -> tuple[list[tuple[int, float, np.ndarray]], list[int], list[int]]:
    """Train the paper GPT on its bytes; return loss and targets' probabilities at RUN, and its text before, after."""
    model, optimizer = _paper_model(), AdamW(lr=RATE, weight_decay=0.0)
    tokens, targets = [list(BYTES[:-1])], [list(BYTES[1:])]
    found, before = [], _written(model)
    for n in range(RUN[-1] + 1):
        model.zero_grad()
        loss = model.loss(tokens, targets)
        if n in RUN:
            p = softmax.forward(model.forward_logits(tokens).data[0])[0]
            found.append((n, loss.item(), p[np.arange(len(BYTES) - 1), targets[0]]))
        loss.backward()
        if n < RUN[-1]:
            optimizer.step(model.parameters())
    return found, before, _written(model)


def _written(model: TinyGPT) -> list[int]:
    return list(generate(model, [BYTES[0]], len(BYTES) - 1, Sampling(temperature=0), runtime="numpy"))


def _paper_model() -> TinyGPT:
    return model_of(paper_gpt_4.CONFIG, {n: array(w) for n, w in paper_gpt_4.WEIGHTS.items()})


@block
def one_draw(page: Path, lang: str) -> str:
    """Four logits, their probabilities and running sums, and the token that one uniform number picks."""
    p = softmax.forward(np.array(sampling.LOGITS, dtype=float))[0]
    sums = np.cumsum(p)
    token = int(np.searchsorted(sums, sampling.UNIFORM, side="right"))
    rows = [
        (v, f"{sampling.LOGITS[v]}", decimals(p[v]), decimals(sums[v]), "←" if v == token else "")
        for v in range(len(p))
    ]
    u = f"u = {sampling.UNIFORM}"
    return table(Words(f"Token|Logit|p|Running sum|{u}", f"词元|logit|p|累计|{u}"), rows, lang)


def _vector(numbers: object) -> str:
    return f"({', '.join(f'{x:g}' for x in np.asarray(numbers))})"
