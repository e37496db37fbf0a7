"""Generation: a prompt continued token by token, by the given runtime or the fastest one that can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np

from byhand.errors import ConfigError, DataError, ShapeError
from byhand.formats.names import Weights
from byhand.host import token_array
from byhand.model import TinyGPT
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import begin
from byhand.runtimes.sampling import Sampling

START = 10  # a newline, in place of an empty prompt


class Generation(Iterator[int]):
    """Token ids, each as soon as it is drawn.

    runtime  name of the runtime that computes them
    why      why auto took no faster runtime; "" if it did
    """

    def __init__(self, tokens: Iterator[int], runtime: str, why: str = "") -> None:
        self._tokens = tokens
        self.runtime = runtime
        self.why = why

    def __next__(self) -> int:
        return next(self._tokens)


def generate(
    model: TinyGPT,
    prompt: Sequence[int],
    max_new_tokens: int,
    sampling: Sampling | None = None,
    *,
    allowed: np.ndarray | None = None,
    use_cache: bool = True,
    runtime: str = "auto",
    weights: Weights = "float32",
) -> Generation:
    """Return max_new_tokens token ids that continue the prompt, drawn one after the other.

    prompt   ids of any length; an empty one is continued as after a newline
    allowed  booleans (V,): which ids may be drawn; None allows all
    runtime  all draw the same tokens up to rounding; auto takes the fastest one that can
    weights  bfloat16 rounds every matrix and table, not activations and sums: the loops runtime then reads half as
             much, which is faster if the weights do not fit into the caches

    Raises ConfigError or DataError for invalid arguments, NonFiniteError if the logits are not finite.
    """
    if not isinstance(max_new_tokens, (int, np.integer)) or max_new_tokens < 0:
        raise ConfigError(f"max_new_tokens is {max_new_tokens!r}, but must be an integer of 0 or more.")
    if weights not in get_args(Weights):
        raise ConfigError(f"weights is {weights!r}. Use one of {', '.join(get_args(Weights))}.")
    vocab_size = model.config.vocab_size
    if allowed is not None and np.shape(allowed) != (vocab_size,):
        raise ShapeError(f"allowed has the shape {np.shape(allowed)}, but must be ({vocab_size},).")
    if allowed is not None and not np.any(allowed):
        raise ConfigError("no token is allowed. Allow at least one.")
    if isinstance(prompt, str):
        raise DataError(
            "the prompt is a str. Pass token ids: prompt.encode() for bytes, or tokenizer.encode(prompt)."
        )
    sampling = sampling or Sampling()
    given = list(prompt) if isinstance(prompt, bytes) else prompt
    tokens = token_array(
        [given if np.size(given) else [min(START, vocab_size - 1)]], vocab_size, "the prompt's tokens"
    )
    request = Request("generate", model.config, runtime, str(model.dtype), weights=weights, cache=use_cache)
    decoder, choice = begin(request, lambda chosen: chosen.decoder(model, request))
    runs = decoder.generate(tokens.tolist(), max_new_tokens, sampling, allowed)
    return Generation((int(token) for run in runs for token in run[:, 0]), choice.runtime.name, choice.why)
