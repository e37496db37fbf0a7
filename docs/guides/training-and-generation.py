"""What the page asks: clipping, updates, micro-batches, whole small runs, a draw."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from byhand.book.lessons.examples import sampling
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

REVERSED = (0, 2, 0, 1)  # no gain no pain: the paper GPT's words the other way round


def clipped(gradient: Sequence[float], most: float) -> tuple[float, np.ndarray]:
    """Return the norm of a gradient, and the gradient clipped to the norm `most`."""
    g = {"w": np.array(gradient)}
    norm = gradient_norm(g)
    return norm, clip_gradients(g, norm, most)["w"]


def first_change(gradient: float) -> float:
    """Return the change of a weight in the first update of AdamW without decay, for one gradient."""
    parameter = TinyGPT(ModelConfig(2, 1, 1), dtype="float64").parameters()["wte"]
    before = parameter.data.copy()
    parameter.grad = np.full_like(before, gradient)
    AdamW(lr=OptimConfig().lr, weight_decay=0.0).step({"wte": parameter})
    return float((parameter.data - before)[0, 0])


def micro_batches() -> tuple[np.ndarray, ...]:
    """Return the gradient of `lm_head.b` for two sequences of the paper GPT: of each alone, of both as one batch."""
    tokens, targets = [TOKENS, [1, 0, 2]], [TARGETS, [0, 2, 1]]

    def gradient(rows: slice) -> np.ndarray:
        model = paper_model()
        model.loss(tokens[rows], targets[rows]).backward()
        return np.asarray(model.parameters()["lm_head.b"].grad)

    return gradient(slice(0, 1)), gradient(slice(1, 2)), gradient(slice(None))


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


def one_draw() -> tuple[list[int], np.ndarray, float, int]:
    """Return four logits, their probabilities, a uniform number, and the token that it draws."""
    trace = Trace.of(lambda: softmax(Tensor(np.array(sampling.LOGITS, dtype=float)), name="p"))
    return sampling.LOGITS, trace.result.data, sampling.UNIFORM, int(drawn_with(sampling.UNIFORM, trace).value)
