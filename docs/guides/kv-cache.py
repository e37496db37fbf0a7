"""What the page asks: passes with and without a cache, and how much each computes."""

import math
from functools import cache

import numpy as np

from byhand.book.pictures.passes import TOKENS, cached_passes, paper_model
from byhand.equations.attention_scores import attention_scores
from byhand.tracing.trace import Trace


@cache
def cache_passes() -> list[tuple[Trace, Trace]]:
    """Return for each length of the example the pass over all tokens, and that of the last token with a cache."""
    model = paper_model()
    whole = [Trace.of(lambda n=n: model.forward_logits([TOKENS[:n]])) for n in range(1, len(TOKENS) + 1)]
    return list(zip(whole, cached_passes(), strict=True))


def first_head(trace: Trace, name: str) -> np.ndarray:
    """Return an array of the block for the only sequence, and for its first head if it has heads."""
    found = trace.tensor(f"blocks.0.{name}").data
    return found[0, 0] if found.ndim == 4 else found[0]


def cache_work() -> np.ndarray:
    """Return for each step the query rows and the scores that attention computes: without a cache, and with one."""
    return np.array([(*work(whole), *work(cached)) for whole, cached in cache_passes()])


def work(trace: Trace) -> tuple[int, int]:
    """Return how many query rows and how many scores attention computes."""
    shapes = [a.results[0].shape for a in trace.applications if a.equation is attention_scores]
    return sum(b * t for b, _, t, _ in shapes), sum(map(math.prod, shapes))
