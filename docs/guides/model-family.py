"""What the page asks: the architectures, the flags that choose each equation, and the sliding window."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from byhand import host
from byhand.architectures import ARCHITECTURES
from byhand.book.entries.contract import ByStem
from byhand.book.finding.flow import order
from byhand.book.pictures.passes import pass_through
from byhand.config import ModelConfig
from byhand.engine import no_grad
from byhand.model import TinyGPT
from byhand.runtimes.numpy.decoder import next_logits

VOCABULARIES = (
    256,
    50_257,
    49_152,
    151_936,
    256,
    27,
)  # bytes, or that of the published tokenizer
SLIDING = ModelConfig(vocab_size=12, seq_len=6, d_model=16, n_layers=2, n_heads=4, positions="rotary")
PROMPT = (1, 2, 3)


def sliding(*shown: int) -> Iterator[tuple[int, float, float, float]]:
    """Yield the largest logit after so many new tokens: how many there are, sliding cache, all, the last."""
    model = TinyGPT(SLIDING, dtype="float64")
    for name, p in model.parameters().items():
        p.data = host.normal(name, p.data.shape, float(name.endswith("gain")), 0.5, 1, "float64")
    tokens: list[int] = [*PROMPT]
    for logits in islice(next_logits(model, tokens, max(shown) + 1), max(shown) + 1):
        with no_grad():
            whole = model.forward_logits([tokens]).data[0, -1]
            fresh = model.forward_logits([tokens[-SLIDING.seq_len :]]).data[0, -1]
        best = int(np.argmax(logits))
        if len(tokens) - len(PROMPT) in shown:
            yield len(tokens), logits[best], whole[best], fresh[best]
        tokens.append(best)


NUMBERS = {"n_kv_heads": ("K", 1), "attention_window": ("W", 2), "logit_softcap": ("c", 5.0)}
"""Settings that have no list of choices: the letter of a value, and a value that applies an equation."""


def _choices() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each choice that is not the default: as a flag, and as a setting."""
    for name, hint in get_type_hints(ModelConfig).items():
        default, words = getattr(ModelConfig(), name), name.replace("_", "-")
        written = f"--{words}"
        if hint is bool:
            yield f"--no-{words}" if default else written, {name: not default}
        elif get_origin(hint) is Literal:
            yield from ((f"{written} {option}", {name: option}) for option in get_args(hint))
        elif name in NUMBERS:
            letter, value = NUMBERS[name]
            yield f"{written} {letter}", {name: value}


def architectures() -> list[ModelConfig]:
    """Return the default model and the architectures, each with its vocabulary."""
    shapes = [ModelConfig(), *ARCHITECTURES.values()]
    return [replace(config, vocab_size=v) for config, v in zip(shapes, VOCABULARIES, strict=True)]


def chosen_by() -> dict[str, list[str]]:
    """Return, for each equation that the default model does not apply, the flags that make it do so."""
    shape = {"seq_len": 3, "d_model": 8, "n_heads": 2}

    def applied(**settings: Any) -> set[str]:
        trace = pass_through(ModelConfig(**shape, **settings), 1, 3)
        return {application.equation.name for application in trace.applications}

    default, found = applied(), ByStem({name: [] for name in order()})
    for written, setting in _choices():
        for name in applied(**setting) - default:
            found[name].append(written)
    return {name: flags for name, flags in found.items() if flags}
