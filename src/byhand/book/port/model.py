"""The models of the page "Port a GPT": sizes, weights and tokens by a formula, and the numbers that a port prints.

Its settings bite: with a large eps, a large step, strong decay, random gains and biases, each part of the
computation moves the loss. It stands here, and not beside the page, because the command, its table and the tests read it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice, repeat
from typing import Any

import numpy as np

from byhand.architectures import LLAMA, MICROGPT
from byhand.book.port.microgpt import by_our_names, in_order
from byhand.clipping import gradient_norm
from byhand.config import ModelConfig
from byhand.model import TinyGPT, parameter_shapes
from byhand.optim import AdamW
from byhand.tracing.questions import Questions

GPT = ModelConfig(vocab_size=11, seq_len=6, d_model=8, n_layers=2, n_heads=2, d_ff=32, norm_affine=True, norm_eps=0.1)
CONFIGS = {
    "gpt": GPT,
    "llama": replace(
        LLAMA,
        vocab_size=11,
        seq_len=6,
        d_model=24,
        n_layers=2,
        n_heads=6,
        n_kv_heads=2,
        d_ff=48,
        norm_eps=0.1,
        rope_base=10.0,
    ),
    "microgpt": replace(
        MICROGPT,
        vocab_size=11,
        seq_len=6,
        d_model=8,
        n_layers=2,
        n_heads=2,
        norm_eps=0.1,
    ),
}
MICRO = CONFIGS["microgpt"]
DOCUMENT = (10, 3, 0, 3, 8, 0, 10)  # "dadia", of the letters a to j, between two of the token behind them
BATCH = 2
STEP: dict[str, Any] = {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.5, "decay": "matrices"}
FIRST = 7  # the generator's start
UPDATES = 2
FAR = 800.0  # exp(800) is infinite


def states() -> Iterator[int]:
    """Yield x, the generator's states: x = (1664525 x + 1013904223) mod 2^32, after 7."""
    x = FIRST
    while True:
        x = (1664525 * x + 1013904223) % 2**32
        yield x


def filled(dtype: str = "float64", config: ModelConfig = GPT) -> tuple[TinyGPT, Any, Any]:
    """Return the model, its tokens and their targets (B, T): parameters in order, then tokens, from one generator.

    microgpt has its program's order, and one document.
    """
    arrays, draws = {}, states()
    for name, shape in (in_order if config == MICRO else parameter_shapes)(config).items():
        drawn = np.asarray([x / 2**31 - 1 for x in islice(draws, math.prod(shape))])
        if name.endswith("gain"):
            drawn = drawn + 1
        arrays[name] = drawn.reshape(shape).astype(dtype)
    text = [x * config.vocab_size >> 32 for x in islice(draws, BATCH * (config.seq_len + 1))]
    if config == MICRO:
        return TinyGPT(config, arrays=by_our_names(config, arrays)), *arranged(DOCUMENT, 1, len(DOCUMENT))
    return TinyGPT(config, arrays=arrays), *arranged(text, BATCH, config.seq_len + 1)


def arranged(text: Sequence[int], batch: int, length: int) -> tuple[Any, Any]:
    """Return tokens and targets (batch, length - 1) of texts that stand one behind the other."""
    rows = np.asarray(text).reshape(batch, length)
    return rows[:, :-1], rows[:, 1:]


def numbers(dtype: str = "float64", config: ModelConfig = GPT) -> list[float]:
    """Return the four numbers: the loss, the norm of all gradients together, and the loss after each update."""
    model, *batch = filled(dtype, config)
    rates = (rate(t, config) for t in count())
    loss, norm, second, _, third = islice(trained(model, repeat(batch), step_of(config), rates), 2 * UPDATES + 1)
    return [loss, norm, second, third]


def trained(
    model: TinyGPT, batches: Iterable[Sequence[Any]], settings: dict[str, Any], rates: Iterable[float] | None = None
) -> Iterator[float]:
    """Train a model on (tokens, targets); yield by turns the loss and, before the update, the norm of all gradients.

    `rates` are the learning rates, if they change.
    """
    optimizer = AdamW(**settings)
    for (tokens, targets), lr in zip(batches, rates or repeat(optimizer.lr), strict=False):
        model.zero_grad()
        loss = model.loss(tokens, targets)
        yield loss.item()
        loss.backward()
        # Programs that set gradients to 0 first also have one for what the loss does not depend on.
        gradients = {name: 0 * p.data if p.grad is None else p.grad for name, p in model.parameters().items()}
        for name, parameter in model.parameters().items():
            parameter.grad = gradients[name]
        yield float(gradient_norm(gradients))
        optimizer.lr = lr
        optimizer.step(model.parameters())


def step_of(config: ModelConfig) -> dict[str, Any]:
    """Return the optimizer's settings for the first update; microgpt has no decay."""
    return STEP | {"lr": rate(0, config)} | ({"weight_decay": 0.0} if config == MICRO else {})


def questions(name: str, dtype: str = "float64") -> Questions:
    """Return the pass of one of `CONFIGS` and its first update."""
    return Questions(*filled(dtype, CONFIGS[name]), AdamW(**step_of(CONFIGS[name])))


def rate(t: int, config: ModelConfig) -> float:
    """Return the learning rate of update t, from 0; microgpt's falls linearly, to 0 after as many steps as losses."""
    return STEP["lr"] * (1 - t / (UPDATES + 1)) if config == MICRO else STEP["lr"]


def far(dtype: str = "float64", config: ModelConfig = GPT) -> list[float]:
    """Return the first loss with 800 added to the head's bias, and with 800 added to the keys' biases instead.

    Neither changes a softmax: each row of logits, and each query's row of scores, moves as a whole.
    """
    found = []
    for name, columns in (("lm_head.b", slice(None)), ("b_qkv", slice(config.d_model, 2 * config.d_model))):
        model, tokens, targets = filled(dtype, config)
        for parameter in (p for n, p in model.parameters().items() if n.endswith(name)):
            moved = np.array(parameter.data)
            moved[columns] += FAR
            parameter.data = moved
        found.append(model.loss(tokens, targets).item())
    return found


def all_numbers(name: str = "gpt") -> list[float]:
    """Return the numbers of one of `CONFIGS` in float64: four, and the two of `far` if it has those biases."""
    config = CONFIGS[name]
    return [*numbers("float64", config), *(far("float64", config) if config.lm_head_bias else ())]
