"""Sampling: how the next token is drawn from logits; the reference for the draws of other runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.config_checks import LARGE
from byhand.engine import Tensor, no_grad
from byhand.engine.context import full_name
from byhand.equations.add import add
from byhand.equations.count_penalty import count_penalty
from byhand.equations.min_p import min_p
from byhand.equations.repetition_penalty import repetition_penalty
from byhand.equations.softmax import softmax
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p
from byhand.errors import UNSOUND_LOGITS, ConfigError, NonFiniteError

COLDEST = 1e-6  # below it, division by the temperature leaves only the likeliest token in float32
PENALTIES = 0.01, 100  # a factor within this range makes no sound logit infinite
COUNTED = 2  # the largest count penalty, as in OpenAI's API
Candidates = list[tuple[int, float]]  # the likeliest tokens of a position, each with its ln p


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn. Temperature 0 (below 1e-6) takes the likeliest; of equals, the smallest id."""

    temperature: float = 1.0
    """Above 1 flatter, below 1 sharper, 0 always the likeliest."""
    top_k: int | None = None
    """Draw from the k likeliest only; of equally likely ones the smaller id comes first."""
    top_p: float | None = None
    """Draw from the fewest tokens whose probabilities sum to p or more."""
    seed: int = 1
    """Same seed, same text."""
    min_p: float | None = None
    """Draw only from tokens with at least this fraction of the likeliest one's probability, such as 0.05."""
    repetition_penalty: float = 1.0
    """Divide the positive logits of tokens in the prompt and the text so far by this, and multiply negative ones:
    above 1, such as 1.1, against repetition."""
    frequency_penalty: float = 0.0
    """Subtract this from a token's logit for each time that it was drawn: -2 to 2, above 0 against repetition."""
    presence_penalty: float = 0.0
    """Subtract this once from the logit of every token that was drawn: -2 to 2, above 0 for new ones."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """Token ids, each with a number that is added to its logit."""

    @property
    def greedy(self) -> bool:
        """Whether tokens are drawn without random numbers."""
        return self.temperature < COLDEST

    @property
    def penalises(self) -> bool:
        """Whether the text's tokens change the draw."""
        return self.repetition_penalty != 1

    @property
    def counts(self) -> bool:
        """Whether it matters how often each token was drawn."""
        return bool(self.frequency_penalty or self.presence_penalty)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, but must be at least 0. Use 1.")
        if not 0 <= self.temperature <= LARGE:
            raise ConfigError(f"temperature is {self.temperature}, but must be between 0 and {LARGE:g}. Use 0.8.")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k is {self.top_k}, but must be at least 1. Use 40.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, but must be above 0 and at most 1. Use 0.95.")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise ConfigError(f"min_p is {self.min_p}, but must be between 0 and 1. Use 0.05.")
        r, (low, high) = self.repetition_penalty, PENALTIES
        if not low <= r <= high:
            raise ConfigError(f"repetition_penalty is {r}, but must be between {low} and {high}. Use 1.1.")
        for name in ("frequency_penalty", "presence_penalty"):
            if not abs(value := getattr(self, name)) <= COUNTED:
                raise ConfigError(f"{name} is {value}, but must be between -{COUNTED} and {COUNTED}. Use 0.5.")
        for token, number in self.logit_bias:
            if token < 0 or not abs(number) <= LARGE:
                raise ConfigError(
                    f"logit_bias is {number} for the token {token}, but must be between -{LARGE:g} and {LARGE:g}, "
                    "for an id of 0 or more. Use -100."
                )


def probabilities(logits: Any, sampling: Sampling) -> Any:
    """Return the probabilities (..., V) to draw from, given logits after `penalised`. Any array framework."""
    with no_grad():
        return distribution(Tensor(logits), sampling).data


def penalised(z: Tensor, sampling: Sampling, tokens: Sequence[int], drawn: Sequence[int] = ()) -> Tensor:
    """Apply the penalties and the bias that there are to the logits (V,) after these tokens.

    tokens  the text: prompt and what was drawn
    drawn   what was drawn, for the count penalty
    """
    if sampling.penalises:
        z = repetition_penalty(z, _counts(tokens, z, "counts"), r=sampling.repetition_penalty, name="penalised")
    if sampling.counts:
        f, p = sampling.frequency_penalty, sampling.presence_penalty
        z = count_penalty(z, _counts(drawn, z, "drawn"), f=f, p=p, name="counted")
    if sampling.logit_bias:
        ids, numbers = zip(*sampling.logit_bias, strict=True)
        bias = np.bincount(ids, numbers, len(z.data)).astype(z.dtype)
        z = add(z, Tensor(bias, name=full_name("bias")), name="biased")
    return z


def _counts(tokens: Sequence[int], z: Tensor, name: str) -> Tensor:
    return Tensor(np.bincount(np.asarray(tokens, int), minlength=len(z.data)), name=full_name(name))


def distribution(z: Tensor, sampling: Sampling) -> Tensor:
    """Apply temperature, then top-k, then top-p, then min-p, then softmax to logits (..., V)."""
    z = temperature(z, tau=sampling.temperature, name="scaled")
    if sampling.top_k is not None:
        z = top_k(z, k=sampling.top_k, name="top_k")
    if sampling.top_p is not None:
        z = top_p(z, p=sampling.top_p, name="top_p")
    if sampling.min_p is not None:
        z = min_p(z, p=sampling.min_p, name="min_p")
    return softmax(z, name="p")


def log_probabilities(logits: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
    """Return ln p (V,) in nats: the model's own among what is allowed, before any setting of `Sampling`."""
    z = np.asarray(logits, np.float64)
    kept = z if allowed is None else z[allowed]
    most = kept.max()
    logp = z - most - np.log(np.exp(kept - most).sum())
    return logp if allowed is None else np.where(allowed, logp, -np.inf)


def likeliest(logp: np.ndarray, n: int) -> Candidates:
    """Return the n tokens with the largest ln p, none of them banned, in order; of equals the smaller id first."""
    n = min(n, int(np.count_nonzero(logp > -np.inf)))
    if not n:
        return []
    ids = np.flatnonzero(logp >= np.partition(logp, -n)[-n])
    ids = ids[np.argsort(-logp[ids], kind="stable")][:n]
    return list(zip(ids.tolist(), logp[ids].tolist(), strict=True))


def draw(
    logits: np.ndarray,
    sampling: Sampling,
    rng: np.random.Generator | float,
    allowed: np.ndarray | None = None,
    tokens: Sequence[int] = (),
    drawn: Sequence[int] = (),
) -> int:
    """Return one token id drawn from logits (V,) by the inverse CDF of its `probabilities`.

    rng     a generator, or the number in [0, 1) that it would give
    tokens  the text so far, for the repetition penalty
    drawn   those of it that were drawn, for the count penalty

    Raises NonFiniteError if a logit is NaN or infinite, or if all are -inf.
    """
    if allowed is not None:
        if not np.any(allowed):
            raise ConfigError("no token is allowed. Allow at least one.")
        logits = np.where(allowed, logits, -np.inf)
    with no_grad():
        logits = penalised(Tensor(logits), sampling, tokens, drawn).data
    if not np.isfinite(np.max(logits)):  # NaN wins every maximum
        raise NonFiniteError(UNSOUND_LOGITS)
    if sampling.greedy:
        return int(np.argmax(logits))
    cumulative = np.cumsum(probabilities(logits, sampling), dtype=np.float64)
    # Strictly below the rounded sum: an id of probability 0 is never drawn, at either end.
    uniform = rng.random() if isinstance(rng, np.random.Generator) else rng
    below = min(uniform * cumulative[-1], np.nextafter(cumulative[-1], 0))
    return int(np.searchsorted(cumulative, below, side="right"))
