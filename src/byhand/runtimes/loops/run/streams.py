"""The decoder behind the seam: one that is kept with its model, or one made for other streams, threads or BLAS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from byhand.runtimes.loops.run.decoding import LoopsDecoder, borrowed
from byhand.runtimes.protocol import Request
from byhand.runtimes.sampling import COLDEST, Sampling


class LoopsStreams:
    """Continues streams by plan; see `Decoder`."""

    def __init__(self, model: Any, request: Request) -> None:
        self._lent: Callable[[], AbstractContextManager[LoopsDecoder]]
        if (request.streams, request.threads, request.blas) == (1, 0, "auto"):
            self._lent = partial(borrowed, model, request.weights)
        else:
            own = LoopsDecoder(model, request.streams, request.threads or None, request.blas, request.weights)
            self._lent = partial(nullcontext, own)
        with self._lent() as decoder:  # made now, so that what it cannot do is known before the text begins
            self.made_by: Counter[int] = decoder.made_by

    def generate(
        self, prompts: Sequence[Sequence[int]], count: int, sampling: Sampling, allowed: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Yield ids run by run."""
        temperature = 0.0 if sampling.temperature < COLDEST else sampling.temperature
        rng = np.random.default_rng(sampling.seed)
        with self._lent() as decoder:
            self.made_by = decoder.made_by
            yield from decoder.generate(prompts, count, temperature, sampling.top_k, sampling.top_p, rng, allowed)
