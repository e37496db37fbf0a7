"""Checks of a run: the text and tokenizer that it began with, and numbers that must be finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.config import OptimConfig
from byhand.corpus.dataset import Corpus
from byhand.errors import CheckpointError, DataError, NonFiniteError
from byhand.runs.contents import Checkpoint


def require_same_text(start: Checkpoint, text: dict[str, Any]) -> None:
    """Raise CheckpointError if a run would go on with another text than it began with."""
    before = start.state.get("text", {})
    if before.get("sha256") != text.get("sha256"):
        raise CheckpointError(
            f"the text changed since the run began: {before.get('path')} had {before.get('bytes')} bytes and SHA-256 "
            f"{str(before.get('sha256'))[:12]}…. Restore it, or start a new run."
        )


def require_same_tokenizer(train: Corpus, val: Corpus, start: Checkpoint | None) -> None:
    """Raise DataError unless both parts of a text, and the run before, are of one tokenizer."""
    if train.tokenizer.digest != val.tokenizer.digest:
        raise DataError(f"{train.name} and {val.name} are of different tokenizers. Encode both with the same one.")
    if start and start.tokenizer.digest != train.tokenizer.digest:
        raise DataError(f"{train.name} is not of the tokenizer that the run began with. Use the checkpoint's.")


def finite(made: Checkpoint) -> Checkpoint:
    """Return the checkpoint; NonFiniteError names the first array that is not finite."""
    kept = {"": made.parameters, "moment m of ": made.m, "moment v of ": made.v, "the average of ": made.averages}
    for what, arrays in kept.items():
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise not_finite(f"{what}{name}, after the update,", made.step, made.config.optim)
    return made


def not_finite(name: str, step: int, optim: OptimConfig) -> NonFiniteError:
    """Return the error for an array that is not finite, with settings that may help."""
    rates = [("lr", optim.lr)] + ([("muon-lr", optim.muon_lr)] if optim.optimizer == "muon" else [])
    lower = " and ".join(f"a lower --{flag} (now {rate:g}, so --{flag} {rate / 3:.1g})" for flag, rate in rates)
    clip = "" if 0 < optim.grad_clip <= 1 else " or with --grad-clip 1"
    return NonFiniteError(f"step {step}: {name} is not finite; it was not saved. Start a new run with {lower}{clip}.")
