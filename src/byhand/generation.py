"""Generation: prefill, decode with a KV cache, and sampling.

The context of the next token is the last seq_len tokens, at positions from 0, as the seed documents define it. While
the text fits the window, keys and values of earlier positions are kept and each token costs one row. Past the window
every position moves down by one with each token, so nothing kept is valid any more and the window is computed anew:
the same text as without a cache, at the same cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from byhand.config import Runtime, Weights
from byhand.engine import Tensor, no_grad
from byhand.equations import softmax, temperature, top_k, top_p
from byhand.errors import UNSOUND_LOGITS, ConfigError, DataError, NonFiniteError
from byhand.model import TinyGPT
from byhand.runtimes import loops
from byhand.runtimes.bfloat16 import rounded

START = 10  # the newline that stands before an empty prompt
COLDEST = 1e-6  # below it, dividing by the temperature leaves nothing but the likeliest token in float32


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn. Temperature 0 (below 1e-6) takes the likeliest; of equals, the smallest id."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, but must be at least 0. Use --seed 1.")
        if not 0 <= self.temperature < float("inf"):
            raise ConfigError(f"temperature is {self.temperature}, but must be 0 or more. Use --temperature 0.8.")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k is {self.top_k}, but must be at least 1. Use --top-k 40.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, but must be above 0 and at most 1. Use --top-p 0.95.")


class KVCache:
    """Keys and values of the positions so far: for each layer (B, H, S, D), allocated once for seq_len positions."""

    def __init__(self, model: TinyGPT, batch_size: int) -> None:
        self._store = [
            np.zeros((2, batch_size, heads, model.config.seq_len, width), model.dtype)
            for heads, width in model.cache_shapes()
        ]
        self.length = 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values (B, H, T, D) behind the others; return all of them (B, H, S, D)."""
        if k.requires_grad:
            raise DataError(
                "a KV cache passes no gradient back. Compute inside `with no_grad():`, or without a cache."
            )
        end = self.length + k.shape[2]
        keys, values = self._store[layer]
        keys[:, :, self.length : end] = k.data
        values[:, :, self.length : end] = v.data
        return Tensor(keys[:, :, :end]), Tensor(values[:, :, :end])

    def advance(self, n: int) -> None:
        """Count n more positions."""
        self.length += n


class Generation(Iterator[int]):
    """Token ids, each as soon as it is drawn.

    runtime  what computes them: loops or numpy
    why      where auto did not take loops: the reason, else ""
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
    runtime: Runtime = "auto",
    weights: Weights = "float32",
) -> Generation:
    """Return max_new_tokens token ids that continue the prompt, drawn one after the other.

    prompt   ids of any length; an empty one is continued as after a newline
    allowed  booleans (V,): which ids may be drawn; None allows all
    runtime  loops draws the same tokens as numpy (up to rounding) in short runs; auto takes it where it can, and
             `.why` of what is returned says why it cannot
    weights  bfloat16 rounds every matrix and table (activations and sums stay as they are), so that the loops runtime
             reads half as much: faster where the weights do not fit into the caches

    Raises NonFiniteError where the logits are not finite.
    """
    if max_new_tokens < 0:
        raise ConfigError(f"max_new_tokens is {max_new_tokens}, but must be 0 or more.")
    sampling = sampling or Sampling()
    tokens = [int(t) for t in prompt] or [min(START, model.config.vocab_size - 1)]
    if allowed is not None and not np.any(allowed):
        raise ConfigError("no token is allowed. Allow at least one.")
    why = "" if runtime == "numpy" else _obstacle(model, use_cache, weights)
    if why and runtime == "loops":
        raise ConfigError(why)
    if runtime != "numpy" and not why:
        return Generation(_replayed(model, tokens, max_new_tokens, sampling, allowed, weights), "loops")
    return Generation(_evaluated(model, tokens, max_new_tokens, sampling, allowed, use_cache, weights), "numpy", why)


def _obstacle(model: TinyGPT, use_cache: bool, weights: Weights) -> str:
    """Return in a line why the loops runtime cannot generate; "" if it can."""
    if missing := loops.missing():
        needs = " and ".join(missing)
        return f"the loops runtime needs {needs}. Use pip install 'byhand[fast]', or --runtime numpy."
    if not model.config.causal or str(model.dtype) != "float32":
        return "the loops runtime generates with causal float32 models. Use --runtime numpy."
    if not use_cache:
        return "the loops runtime generates with a KV cache. Use --runtime numpy with --no-cache."
    from byhand.runtimes.loops.lowering.generation_plans import NoKernelError
    from byhand.runtimes.loops.run.decoding import borrowed

    try:
        with borrowed(model, weights):
            return ""
    except NoKernelError as error:
        return str(error)


def _replayed(
    model: TinyGPT, tokens: list[int], count: int, sampling: Sampling, allowed: np.ndarray | None, weights: Weights
) -> Iterator[int]:
    from byhand.runtimes.loops.run.decoding import borrowed

    rng, cold = np.random.default_rng(sampling.seed), sampling.temperature < COLDEST
    settings = (0.0 if cold else sampling.temperature, sampling.top_k, sampling.top_p)
    with borrowed(model, weights) as decoder:
        for run in decoder.generate([tokens], count, *settings, rng, allowed):
            yield from map(int, run[:, 0])


def _evaluated(
    model: TinyGPT,
    tokens: list[int],
    count: int,
    sampling: Sampling,
    allowed: np.ndarray | None,
    use_cache: bool,
    weights: Weights,
) -> Iterator[int]:
    rng = np.random.default_rng(sampling.seed)
    if weights == "bfloat16":
        model = _rounded(model)
    for logits in next_logits(model, tokens, count, use_cache):
        token = draw(logits, sampling, rng, allowed)
        tokens.append(token)
        yield token


def _rounded(model: TinyGPT) -> TinyGPT:
    """Return the model with every matrix and table rounded to bfloat16, in the model's own type."""
    arrays = {n: rounded(p.data).astype(p.dtype) if p.ndim > 1 else p.data for n, p in model.parameters().items()}
    return TinyGPT(model.config, arrays=arrays)


def next_logits(model: TinyGPT, tokens: list[int], count: int, use_cache: bool = True) -> Iterator[np.ndarray]:
    """Yield `count` times the logits (V,) of what comes after `tokens`, which grows between two of them."""
    window = model.config.seq_len
    cache = KVCache(model, 1) if use_cache and model.config.causal else None
    for _ in range(count):
        with no_grad(), np.errstate(all="ignore"):  # `draw` refuses what is not finite
            if cache is not None and len(tokens) <= window:
                logits = model.forward_logits([tokens[cache.length :]], cache)
            else:
                logits = model.forward_logits([tokens[-window:]])
        yield logits.data[0, -1]


def draw(logits: np.ndarray, sampling: Sampling, rng: np.random.Generator, allowed: np.ndarray | None = None) -> int:
    """Return one token id drawn from logits (V,): temperature, then top-k, then top-p, then the inverse CDF.

    Raises NonFiniteError if a logit is NaN or infinite, or if all are -inf.
    """
    if allowed is not None:
        if not np.any(allowed):
            raise ConfigError("no token is allowed. Allow at least one.")
        logits = np.where(allowed, logits, -np.inf)
    if not np.isfinite(np.max(logits)):  # NaN wins every maximum
        raise NonFiniteError(UNSOUND_LOGITS)
    if sampling.temperature < COLDEST:
        return int(np.argmax(logits))
    with no_grad():
        z = temperature(logits, tau=sampling.temperature)
        if sampling.top_k is not None:
            z = top_k(z, k=sampling.top_k)
        if sampling.top_p is not None:
            z = top_p(z, p=sampling.top_p)
        cumulative = np.cumsum(softmax(z).data, dtype=np.float64)
    # Below the sum that rounding left: an id of probability 0 is never drawn, at either end.
    below = min(rng.random() * cumulative[-1], np.nextafter(cumulative[-1], 0))
    return int(np.searchsorted(cumulative, below, side="right"))
