"""Sampling: how the next token is drawn from logits, and the reference that other runtimes are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.engine import Tensor, no_grad
from byhand.equations.softmax import softmax
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p
from byhand.errors import UNSOUND_LOGITS, ConfigError, NonFiniteError

COLDEST = 1e-6  # below it, division by the temperature leaves only the likeliest token in float32


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn. Temperature 0 (below 1e-6) takes the likeliest; of equals, the smallest id."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 1

    @property
    def greedy(self) -> bool:
        """Whether a token takes no random number."""
        return self.temperature < COLDEST

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, but must be at least 0. Use 1.")
        if not 0 <= self.temperature < float("inf"):
            raise ConfigError(f"temperature is {self.temperature}, but must be 0 or more. Use 0.8.")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k is {self.top_k}, but must be at least 1. Use 40.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}, but must be above 0 and at most 1. Use 0.95.")


def probabilities(logits: Any, sampling: Sampling) -> Any:
    """Return the probabilities (..., V) to draw with. Any array framework."""
    with no_grad():
        return distribution(Tensor(logits), sampling).data


def distribution(z: Tensor, sampling: Sampling) -> Tensor:
    """Apply temperature, then top-k, then top-p, then softmax to logits (..., V)."""
    z = temperature(z, tau=sampling.temperature, name="scaled")
    if sampling.top_k is not None:
        z = top_k(z, k=sampling.top_k, name="top_k")
    if sampling.top_p is not None:
        z = top_p(z, p=sampling.top_p, name="top_p")
    return softmax(z, name="p")


def log_probability(logits: np.ndarray, token: int, allowed: np.ndarray | None = None) -> float:
    """Return ln p(token) in nats: the model's own among what is allowed, before temperature, top-k and top-p."""
    z = np.asarray(logits if allowed is None else logits[allowed], np.float64)
    most = z.max()
    return float(logits[token] - most - np.log(np.exp(z - most).sum()))


def draw(
    logits: np.ndarray, sampling: Sampling, rng: np.random.Generator | float, allowed: np.ndarray | None = None
) -> int:
    """Return one token id drawn from logits (V,) by the inverse CDF of its `probabilities`.

    rng  a generator, or the number in [0, 1) that it would give

    Raises NonFiniteError if a logit is NaN or infinite, or if all are -inf.
    """
    if allowed is not None:
        if not np.any(allowed):
            raise ConfigError("no token is allowed. Allow at least one.")
        logits = np.where(allowed, logits, -np.inf)
    if not np.isfinite(np.max(logits)):  # NaN wins every maximum
        raise NonFiniteError(UNSOUND_LOGITS)
    if sampling.greedy:
        return int(np.argmax(logits))
    cumulative = np.cumsum(probabilities(logits, sampling), dtype=np.float64)
    # Strictly below the rounded sum: an id of probability 0 is never drawn, at either end.
    uniform = rng.random() if isinstance(rng, np.random.Generator) else rng
    below = min(uniform * cumulative[-1], np.nextafter(cumulative[-1], 0))
    return int(np.searchsorted(cumulative, below, side="right"))
