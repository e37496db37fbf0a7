"""KeptDecoder: one decoder for each model and type of weights, whose plans and threads stay for the next text."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from byhand.formats.names import Weights
from byhand.runtimes.loops.run.decoding import LoopsDecoder
from byhand.runtimes.sampling import Sampling

_kept: weakref.WeakKeyDictionary[Any, dict[Weights, LoopsDecoder]] = weakref.WeakKeyDictionary()


@contextmanager
def borrowed(model: Any, weights: Weights) -> Iterator[LoopsDecoder]:
    """Lend the model's decoder for one stream, or another one if it is lent already."""
    kept = _kept.setdefault(model, {})
    decoder = kept.pop(weights, None)
    if decoder is None:
        fills = max(1, model.config.seq_len - 1)  # tells whether it can, and makes room for any prompt
        decoder = LoopsDecoder(weakref.ref(model), weights=weights, fills=fills)
    try:
        yield decoder
    except GeneratorExit:  # the text was not wanted to its end
        kept[weights] = decoder
        raise
    kept[weights] = decoder  # not after an error


class KeptDecoder:
    """One stream by a decoder that lives as long as the model."""

    def __init__(self, model: Any, weights: Weights) -> None:
        self._lent = partial(borrowed, model, weights)
        with self._lent() as decoder:  # made now, so that what it cannot do is known before the text begins
            self.made_by: Counter[int] = decoder.made_by

    def generate(
        self, prompts: Any, count: int, sampling: Sampling, allowed: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Yield ids run by run; see `LoopsDecoder`."""
        with self._lent() as decoder:
            self.made_by = decoder.made_by
            yield from decoder.generate(prompts, count, sampling, allowed)
