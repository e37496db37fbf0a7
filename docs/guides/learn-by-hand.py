"""What the page asks: the paper GPT without a part, with other numbers, and after an update."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from byhand.book.lessons.changes import with_changes
from byhand.book.lessons.examples import make
from byhand.book.lessons.examples.paper_gpt import (
    CHOICES,
    CONFIG,
    GIVEN,
    RATE,
    WEIGHTS,
    config_of,
    model_of,
    weights_of,
)
from byhand.book.numbers import closed_form
from byhand.book.pictures.passes import TARGETS, TOKENS, paper_model, pass_of
from byhand.equations.softmax import softmax
from byhand.model import TinyGPT
from byhand.optim import AdamW
from pages.blocks.markdown import inline

paper_config, paper_rate = CONFIG, RATE
FORWARD = 20  # steps of its lesson


def names_in_code() -> Iterator[tuple[int, str]]:
    """Yield the steps of the forward pass with their results: each letter, and its name in the code."""
    for n, step in enumerate(make("paper-gpt").steps[:FORWARD], 1):
        yield n, ", ".join(f"{inline(x.letter)} = `{x.name}`" for x in step.arrays)


def paper_without(*names: str) -> tuple[np.ndarray, float]:
    """Return the paper GPT's probabilities at the last position, and its loss, with some weights at 0."""
    model = _with({name: closed_form.array(WEIGHTS[name]) * 0 for name in names})
    return _chances(model, TOKENS)[-1], _loss(model)


def paper_changed(position: int, *changes: str) -> np.ndarray:
    """Return the probabilities at a position, with changes as `byhand work paper-gpt --set` takes them."""
    start = with_changes(GIVEN, changes, CHOICES) if changes else GIVEN
    model = model_of(config_of(start), {name: closed_form.array(w) for name, w in weights_of(start).items()})
    return _chances(model, [int(token) for token in start["text"][:-1]])[position]


def paper_updated(rate: float) -> tuple[float, float]:
    """Return the paper GPT's loss before and after its first update at this learning rate."""
    return pass_of("paper-gpt").trace.result.data.item(), _loss(_updated(rate))


def paper_foretold(*parts: str) -> float:
    """Return gradient times change, summed over weights whose name begins with a part, of the first update."""
    before, after = pass_of("paper-gpt"), _updated(RATE)
    return sum(
        float((before.by_name[name] * (parameter.data - before.trace.values[name])).sum())
        for name, parameter in after.parameters().items()
        if name.startswith(parts)
    )


def _with(changed: Mapping[str, Any]) -> TinyGPT:
    return model_of(CONFIG, {name: closed_form.array(w) for name, w in WEIGHTS.items()} | {**changed})


def _chances(model: TinyGPT, tokens: list[int]) -> np.ndarray:
    """Return the probabilities of the next word (T, V) at each position."""
    return softmax.forward(model.forward_logits([tokens]).data[0])[0]


def _loss(model: TinyGPT) -> float:
    return model.loss([TOKENS], [TARGETS]).item()


def _updated(rate: float) -> TinyGPT:
    model = paper_model()
    model.loss([TOKENS], [TARGETS]).backward()
    AdamW(lr=rate).step(model.parameters())
    return model
