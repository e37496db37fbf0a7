"""The original program's training loop: its batches, its AdamW, and the lines it prints."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from byhand.config import ModelConfig
from byhand.corpus.dataset import ByteDataset
from byhand.errors import DataError, NonFiniteError
from byhand.interop.seed_program.checkpoint import SeedCheckpoint, single
from byhand.interop.seed_program.parameters import initial_parameters
from byhand.interop.seed_program.random import XorShift64Star
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.quantities import counted

BATCHES = 0xDEADBEEF  # separates the generator of batches from those of parameters
SHORTEST_TEXT = 1024
LINE_INTERVAL = 10


def start(config: ModelConfig, lr: float, seed: int) -> SeedCheckpoint:
    """Return the untrained model and its optimizer; every setting in float32, as in the original program."""
    model = TinyGPT(config, arrays=initial_parameters(config, seed))
    return SeedCheckpoint(model, AdamW(single(lr), (single(0.9), single(0.999)), single(1e-8), single(0.01)), step=0)


def require_text(text: ByteDataset, seq_len: int) -> None:
    """Raise DataError for a text that the original program refuses, or that is too short for a window."""
    needed = max(SHORTEST_TEXT, seq_len + 1)
    if len(text) < needed:
        shorter = f" or --seq {len(text) - 1}" if len(text) >= SHORTEST_TEXT else ""
        raise DataError(
            f"{text.name} holds {counted(len(text), 'byte')}, but at least {needed:,} are needed. "
            f"Use a longer text{shorter}."
        )


def train(checkpoint: SeedCheckpoint, text: ByteDataset, steps: int, batch_size: int, seed: int) -> Iterator[str]:
    """Make `steps` updates, advancing the checkpoint's step; yield a line for the first step and for each tenth.

    A line's loss is the one before its update, in nats; its time counts from the call, in seconds. Batches are drawn
    from the beginning of the seed's stream, even after a load. Raises NonFiniteError, before the update, if the loss
    is NaN or infinite.
    """
    model, optimizer = checkpoint.model, checkpoint.optimizer
    rng = XorShift64Star(seed ^ BATCHES)
    begun = time.perf_counter()
    for done in range(1, steps + 1):
        model.zero_grad()
        with np.errstate(all="ignore"):  # the check of the loss suffices
            loss = model.loss(*text.sample_batch(batch_size, model.config.seq_len, rng))
            if not math.isfinite(loss.item()):
                raise NonFiniteError(f"the loss became {loss.item()} at step {checkpoint.step + 1}. Lower --lr.")
            loss.backward()
            optimizer.step(model.parameters())
        checkpoint.step += 1
        if done == 1 or done % LINE_INTERVAL == 0:
            elapsed = time.perf_counter() - begun
            # C++ streams print six significant digits without trailing zeros, like Python's `g`.
            yield f"step {checkpoint.step}  ({done}/{steps})  loss={loss.item():g}  time={elapsed:g}s"
