"""Answers about training: clipping, updates, micro-batches, whole small runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from byhand.book.lessons.examples import classifier, sampling
from byhand.book.lessons.examples.paper_gpt import VOCABULARY
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.cross_entropy_curve import loss as loss_of
from byhand.book.pictures.passes import TARGETS, TOKENS, paper_model
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
from pages.answers.registry import ANSWERS, answer

REVERSED = (0, 2, 0, 1)  # no gain no pain: the paper GPT's words the other way round
ANSWERS |= {"learning_rate": learning_rate, "loss_of": loss_of, "vocabulary": VOCABULARY}


@answer
def clipped(gradient: Sequence[float], most: float) -> tuple[float, np.ndarray]:
    """Return the norm of a gradient, and the gradient clipped to the norm `most`."""
    g = {"w": np.array(gradient)}
    norm = gradient_norm(g)
    return norm, clip_gradients(g, norm, most)["w"]


@answer
def first_change(gradient: float) -> float:
    """Return the change of a weight in the first update of AdamW without decay, for one gradient."""
    parameter = TinyGPT(ModelConfig(2, 1, 1), dtype="float64").parameters()["wte"]
    before = parameter.data.copy()
    parameter.grad = np.full_like(before, gradient)
    AdamW(lr=OptimConfig().lr, weight_decay=0.0).step({"wte": parameter})
    return float((parameter.data - before)[0, 0])


@answer
def micro_batches() -> tuple[np.ndarray, ...]:
    """Return the gradient of `lm_head.b` for two sequences of the paper GPT: of each alone, of both as one batch."""
    tokens, targets = [TOKENS, [1, 0, 2]], [TARGETS, [0, 2, 1]]

    def gradient(rows: slice) -> np.ndarray:
        model = paper_model()
        model.loss(tokens[rows], targets[rows]).backward()
        return np.asarray(model.parameters()["lm_head.b"].grad)

    return gradient(slice(0, 1)), gradient(slice(1, 2)), gradient(slice(None))


@answer
@cache
def small_run(rate: float, shown: tuple[int, ...]) -> tuple[list[tuple[Any, ...]], list[int], list[int]]:
    """Train the paper GPT anew on `REVERSED`, with a constant rate.

    Returns (updates, loss, probabilities of the targets) at each number of updates that is shown, and the tokens that
    the model writes before and after.
    """
    model, optimizer = paper_model(), AdamW(lr=rate, weight_decay=0.0)
    tokens, targets = REVERSED[:-1], REVERSED[1:]
    found, before = [], _written(model)
    for n in range(shown[-1] + 1):
        model.zero_grad()
        loss = model.loss([tokens], [targets])
        if n in shown:
            p = softmax.forward(model.forward_logits([tokens]).data[0])[0]
            found.append((n, loss.item(), p[np.arange(len(targets)), targets]))
        loss.backward()
        if n < shown[-1]:
            optimizer.step(model.parameters())
    return found, before, _written(model)


def _written(model: TinyGPT) -> list[int]:
    return list(generate(model, [REVERSED[0]], len(REVERSED) - 1, Sampling(temperature=0), runtime="numpy"))


@answer
def one_draw() -> tuple[list[int], np.ndarray, float, int]:
    """Return four logits, their probabilities, a uniform number, and the token that it draws."""
    trace = Trace.of(lambda: softmax(Tensor(np.array(sampling.LOGITS, dtype=float)), name="p"))
    return sampling.LOGITS, trace.result.data, sampling.UNIFORM, int(drawn_with(sampling.UNIFORM, trace).value)


@answer
def classifier_run(*shown: int) -> Iterator[tuple[int, float, np.ndarray]]:
    """Yield updates, the loss, and the probability of each picture's right class, for the small classifier."""
    p = classifier.given_weights(array)
    optimizer = AdamW(classifier.RATE, weight_decay=0.0)  # its eps is too small to show in six decimals
    for n in range(max(shown) + 1):
        for tensor in p.values():
            tensor.grad = None
        loss: Any = classifier.loss_of(p, array)
        if n in shown:
            yield n, loss.item(), loss.node.saved[0][range(len(classifier.CLASSES)), classifier.CLASSES]
        loss.backward()
        optimizer.step(p)
