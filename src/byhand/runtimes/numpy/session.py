"""Training with NumPy: record the graph, walk back, apply the optimizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.engine import interpreting
from byhand.engine.interpreter import Evaluate
from byhand.equations.cross_entropy import cross_entropy
from byhand.runtimes.protocol import Batch, Shape
from byhand.runtimes.sessions import KnownOutcome, LocalSession, checked, checked_loss, checked_step, count_targets


class NumpySession(LocalSession):
    """Steps and losses with NumPy; see `TrainingSession`. Returns numbers that are not finite without a warning."""

    description = "equation by equation"

    def __init__(self, model: Any, optimizer: Any = None, how: Evaluate | None = None) -> None:
        self.model = model
        self.optimizer = optimizer
        self._how = how or Evaluate()  # interpreter of passes without recording

    def step(self, batches: Sequence[Batch], max_norm: float) -> KnownOutcome:
        """Make one update; see `TrainingSession`."""
        micro_batches = checked_step(self.model, self.optimizer, batches)
        total = count_targets(micro_batches)
        self.model.zero_grad()
        losses = []
        with np.errstate(all="ignore"):
            for tokens, targets in micro_batches:
                loss, weight = self.model.loss(tokens, targets), np.count_nonzero(targets >= 0) / total
                losses.append(loss.item() * weight)
                if not math.isfinite(losses[-1]):
                    return KnownOutcome(losses[-1], math.nan)
                loss.backward(weight)
                del loss  # frees its graph before the next one is recorded
            norm = self.optimizer.clipped_step(self.model.parameters(), max_norm)
        return KnownOutcome(math.fsum(losses), norm)

    def loss(self, tokens: Any, targets: Any, counted: int | None = None, average: bool = False) -> float:
        """Return the mean loss of a batch, or of the last `counted` targets of its rows, without recording."""
        model = self.model
        if average and self.optimizer.averages:
            model = type(model)(model.config, arrays=self.optimizer.averages)
        tokens, targets = checked_loss(model, tokens, targets, counted)
        with interpreting(self._how), np.errstate(all="ignore"):
            if counted is None:
                return model.loss(tokens, targets).item()
            return cross_entropy(model.forward_logits(tokens).data[:, -counted:], targets[:, -counted:]).item()

    def row_losses(self, tokens: Any, targets: Any, counted: np.ndarray) -> np.ndarray:
        """Return the summed loss of each row's marked targets, row by row to bound the memory of logits."""
        tokens, targets = checked(self.model, tokens, targets)
        sums = np.zeros(len(tokens))
        with interpreting(self._how), np.errstate(all="ignore"):
            for i, marked in enumerate(counted):
                if marked.any():
                    logits = self.model.forward_logits(tokens[i : i + 1]).data[:, marked]
                    own = targets[i : i + 1, marked]
                    sums[i] = cross_entropy(logits, own).item() * np.count_nonzero(own >= 0)
        return sums

    def prepare(self, steps: Sequence[Shape], losses: Sequence[Shape]) -> None:
        """Do nothing: NumPy computes any shape at once."""

    def provenance(self) -> dict[str, Any]:
        """Return the runtime's name."""
        return {"runtime": "numpy"}
