"""Continue one prompt, yielding tokens as they are drawn."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from typing import get_args

import numpy as np

from byhand.errors import ConfigError, DataError
from byhand.formats.names import Weights
from byhand.generation.engine import LIVE, Engine, sound
from byhand.host import token_array
from byhand.model import TinyGPT
from byhand.runtimes.sampling import Sampling
from byhand.runtimes.streams import Stream
from byhand.tokenizers.byte import ByteTokenizer
from byhand.tokenizers.tokenizer import Tokenizer

START = 10  # a newline, instead of an empty prompt


class Generation(Iterator[int]):
    """Token ids, yielded as they are drawn.

    runtime   name of the runtime used
    why       why auto did not take a faster runtime; "" if it did
    logprobs  of the drawn tokens, if requested
    """

    def __init__(self, tokens: Iterator[int], runtime: str, why: str = "", logprobs: Sequence[float] = ()) -> None:
        self._tokens = tokens
        self.runtime = runtime
        self.why = why
        self.logprobs = logprobs

    def __next__(self) -> int:
        return next(self._tokens)


def beginning(tokenizer: Tokenizer, vocab_size: int) -> list[int]:
    """Return what is read in place of a prompt without tokens: a newline."""
    newline = [min(START, vocab_size - 1)]  # a byte model's vocabulary may end before it
    return newline if isinstance(tokenizer, ByteTokenizer) else tokenizer.encode(b"\n") or newline


def generate(
    model: TinyGPT,
    prompt: Sequence[int],
    max_new_tokens: int,
    sampling: Sampling | None = None,
    *,
    allowed: np.ndarray | None = None,
    stop: Collection[int] = (),
    scored: bool = False,
    use_cache: bool = True,
    runtime: str = "auto",
    weights: Weights = "float32",
) -> Generation:
    """Return max_new_tokens token ids that continue the prompt, drawn one by one.

    prompt   ids of any length; an empty one counts as a newline
    allowed  booleans (V,): the ids that may be drawn; None allows all
    stop     ids that end the text; the drawn one is left out
    scored   keep each token's log-probability (`Generation.logprobs`)
    runtime  all draw the same tokens up to rounding; auto takes the fastest suitable one
    weights  the type to which every matrix and table is rounded, but not activations and sums: the loops runtime then
             reads less, which is faster if the weights exceed the caches

    Raises ConfigError or DataError for invalid arguments, NonFiniteError if the logits are not finite.
    """
    if not isinstance(max_new_tokens, (int, np.integer)) or max_new_tokens < 0:
        raise ConfigError(f"max_new_tokens is {max_new_tokens!r}, but must be an integer of 0 or more.")
    if weights not in get_args(Weights):
        raise ConfigError(f"weights is {weights!r}. Use one of {', '.join(get_args(Weights))}.")
    vocab_size = model.config.vocab_size
    if isinstance(prompt, str):
        raise DataError(
            "the prompt is a str. Pass token ids: prompt.encode() for bytes, or tokenizer.encode(prompt)."
        )
    sampling = sampling or Sampling()
    given = list(prompt) if isinstance(prompt, bytes) else prompt
    tokens = token_array(
        [given if np.size(given) else [min(START, vocab_size - 1)]], vocab_size, "the prompt's tokens"
    )
    engine = Engine(model, runtime=runtime, weights=weights, cache=use_cache)
    stream = engine.submit(
        Stream(tokens[0].tolist(), int(max_new_tokens), sampling, allowed, frozenset(stop), scored)
    )
    return Generation(drawn(engine, stream), engine.choice.runtime.name, engine.choice.why, stream.logprobs)


def drawn(engine: Engine, stream: Stream) -> Generator[int]:
    """Yield the tokens of a submitted stream, run by run; leaving the loop cancels it."""
    known = stream.prompt
    try:
        while stream.status in LIVE or known < len(stream.tokens):
            if known == len(stream.tokens):  # other threads' steps may have advanced it
                engine.step()
            new = stream.tokens[known:]
            known += len(new)
            yield from new
    finally:
        engine.cancel(stream)
    sound(stream)
