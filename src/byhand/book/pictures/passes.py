"""The passes that pictures and pages show: the lessons' models, traced forward and walked back."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from byhand.book.lessons.examples import kv_cache, matrix_core, multi_head, paper_gpt
from byhand.book.numbers.arithmetic import decimal
from byhand.book.numbers.closed_form import array
from byhand.config import ModelConfig
from byhand.equations.softmax import softmax
from byhand.model import TinyGPT
from byhand.runtimes.sampling import Sampling
from byhand.tracing.gradients import Gradients
from byhand.tracing.sampling import draw_answer, sampling_trace
from byhand.tracing.settled import settled_backward
from byhand.tracing.trace import Trace

BLOCK = "blocks.0."
TOKENS: list[int] = [*paper_gpt.TEXT[:-1]]
TARGETS: list[int] = [*paper_gpt.TEXT[1:]]


def paper_model() -> TinyGPT:
    """Return the paper GPT, in float64."""
    return paper_gpt.model_of(paper_gpt.CONFIG, {name: array(w) for name, w in paper_gpt.WEIGHTS.items()})


@cache
def pass_of(lesson: str) -> Gradients:
    """Return the pass of a lesson from tokens to loss and back; its `trace` has the values."""
    if lesson == "matrix-core":
        loss = partial(matrix_core.loss_of, matrix_core.given_weights(array), array)
        return settled_backward(Trace.of(loss), array(1))
    model = paper_model()
    return Trace.of(lambda: model.loss([TOKENS], [TARGETS])).backward()


@cache
def cached_passes() -> tuple[Trace, ...]:
    """Return the pass of each token of the lesson `kv-cache`, which are decoded one by one with a cache."""
    model = paper_model()
    kept, traces = model.cache(), []
    for token in TOKENS:
        trace, kept = kv_cache.decoded(model, token, kept)
        traces.append(trace)
    return tuple(traces)


def next_token(logits: Any) -> tuple[list[float], int]:
    """Return the probabilities of the next token, and the first one that sampling with default settings draws."""
    sampling = Sampling()
    token = draw_answer(sampling_trace(logits, sampling), sampling)
    return softmax.forward(logits)[0].tolist(), int(token.value)


@cache
def attention_of(heads: int) -> Trace:
    """Return attention of the lesson `multi-head` with so many heads."""
    return multi_head.attended(array, heads)


@cache
def pass_through(config: ModelConfig, batch: int, length: int) -> Trace:
    """Return the pass of a freshly made model, for its graph and shapes."""
    tokens = np.zeros((batch, length), np.int64)
    model = TinyGPT(config)
    return Trace.of(lambda: model.loss(tokens, tokens))


def rows_of(array: Any, digits: int = 4) -> list[list[str]]:
    """Return an array as rows of numbers to read, its leading axes of length 1 left out."""
    whole = np.atleast_1d(np.asarray(array, float))
    return [[decimal(float(number), digits) for number in row] for row in whole.reshape(-1, whole.shape[-1])]


def in_line(array: Any, digits: int = 4) -> str:
    """Write a matrix, or one number, in one line."""
    rows = [f"[{', '.join(row)}]" for row in rows_of(array, digits)]
    return f"[{', '.join(rows)}]" if np.ndim(array) else rows[0].strip("[]")
