"""The shapes of benchmarks: operations of a step, the model, a random batch."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from byhand.architectures import ARCHITECTURES
from byhand.budget.recipe import kv_heads
from byhand.config import ModelConfig, TrainConfig
from byhand.errors import ConfigError
from byhand.flops import step_flops
from byhand.runtimes.cores import cores


@dataclass(frozen=True)
class Shape:
    """B windows of T tokens through L blocks of width C with H heads, over V tokens.

    architecture  sets the model's choices (see `ARCHITECTURES`); the defaults if not given
    d_ff, n_kv_heads  as in `ModelConfig`, the architecture's if not given
    """

    batch: int
    seq_len: int
    d_model: int
    n_layers: int
    n_heads: int
    vocab_size: int
    architecture: str = ""
    d_ff: int | None = None
    n_kv_heads: int | None = None

    @property
    def tokens(self) -> int:
        """Tokens in a step."""
        return self.batch * self.seq_len

    @property
    def flops(self) -> int:
        """Operations of a training step."""
        return step_flops(self.model(), self.batch)

    def random_batch(self) -> tuple[np.ndarray, np.ndarray]:
        """Return fixed random (tokens, targets), each (B, T)."""
        rng = np.random.default_rng(0)
        tokens, targets = (rng.integers(0, self.vocab_size, (self.batch, self.seq_len)) for _ in range(2))
        return tokens, targets

    def model(self, seq_len: int | None = None) -> ModelConfig:
        """Return the model of this shape; seq_len for another context."""
        base = ARCHITECTURES.get(self.architecture, ModelConfig())
        return replace(
            base,
            vocab_size=self.vocab_size,
            seq_len=seq_len or self.seq_len,
            d_model=self.d_model,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            n_kv_heads=self.n_kv_heads or kv_heads(self.n_heads, base),
            d_head=None,
            d_ff=self.d_ff,
        )


SHAPES = {
    "tiny": Shape(4, 64, 64, 1, 1, 256),
    "nano": Shape(12, 64, 128, 4, 4, 256),
    "small": Shape(8, 256, 384, 6, 6, 256),
}


PLAIN = "plain"
OFFERED = (PLAIN, *ARCHITECTURES)
Blas = Literal["auto", "tiles", "scipy"]  # matrix products of the loops runtime; auto: the fastest
NUMBER = r" *0*([1-9][0-9]{0,8}) *"
NUMBERS = ",".join([NUMBER, NUMBER, f"{NUMBER}(?:/{NUMBER})?", NUMBER, f"{NUMBER}(?:/{NUMBER})?", NUMBER])
MOST_TIMED = 64  # threads on a machine with fewer cores: each further one lengthens every barrier


def shape_of(text: str, architecture: str = PLAIN) -> Shape:
    """Return a named shape, or the one of B,T,C[/F],L,H[/K],V, in one of the offered architectures."""
    shape = replace(_shape_of(text), architecture="" if architecture == PLAIN else architecture)
    TrainConfig(model=shape.model(), batch_size=shape.batch)  # refuses a shape that is too large
    return shape


def _shape_of(text: str) -> Shape:
    if text in SHAPES:
        return SHAPES[text]
    if not (found := re.fullmatch(NUMBERS, text)):
        raise ConfigError(
            f"shape {text[:60]!r} is not known. Use {', '.join(SHAPES)}, or B,T,C,L,H,V such as 4,64,64,1,1,256; "
            "C/F and H/K also set the width of the MLP and the heads of keys and values."
        )
    batch, steps, width, ff, layers, heads, kv, vocab = (int(number or 0) for number in found.groups())
    return Shape(batch, steps, width, layers, heads, vocab, d_ff=ff or None, n_kv_heads=kv or None)


def require_threads(threads: int) -> None:
    """Raise ConfigError for a number of threads that training would refuse, or that would be timed for minutes."""
    TrainConfig(threads=threads)
    if threads > (most := max(cores(), MOST_TIMED)):
        raise ConfigError(f"threads is {threads}, but a measurement can have at most {most} here. Use {cores()}.")
