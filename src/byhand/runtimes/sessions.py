"""Common to the runtimes' training sessions: outcomes, states, checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from byhand.errors import ConfigError, DataError, ShapeError
from byhand.host import target_array, token_array
from byhand.optim import State


class KnownOutcome(NamedTuple):
    """An outcome that is complete when the step ends."""

    loss: float
    norm: float


def held(model: Any, optimizer: Any = None) -> State:
    """Return the arrays that model and optimizer hold."""
    arrays = {name: p.data for name, p in model.parameters().items()}
    return State(arrays, {}, {}) if optimizer is None else State(arrays, optimizer.moments, optimizer.averages)


def state_of(model: Any, optimizer: Any = None) -> State:
    """Return these arrays, read-only; the next step may change their values."""
    return State.each(lambda part: {name: _read_only(a) for name, a in part.items()}, held(model, optimizer))


def _read_only(array: Any) -> np.ndarray:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def checked(model: Any, tokens: Any, targets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a batch as integer arrays of one shape. Checks ids: compiled code would index out of bounds."""
    vocab = model.config.vocab_size
    tokens, targets = token_array(tokens, vocab), target_array(targets, vocab)
    if tokens.shape != targets.shape:
        raise ShapeError(f"targets {targets.shape} do not match tokens {tokens.shape}.")
    return tokens, targets


def checked_loss(model: Any, tokens: Any, targets: Any, counted: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return a checked batch with the last `counted` targets of its rows, or all; DataError if there is none."""
    tokens, targets = checked(model, tokens, targets)
    if counted is not None:
        targets = np.where(np.arange(tokens.shape[1]) < tokens.shape[1] - counted, -1, targets)
    count_targets([(tokens, targets)])
    return tokens, targets


def checked_step(model: Any, optimizer: Any, batches: Sequence[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a step's micro-batches, checked; ConfigError without an optimizer, DataError without a batch."""
    if optimizer is None:
        raise ConfigError("this session was made without an optimizer, so it cannot make a step.")
    if not batches:
        raise DataError("a step needs data, but there is no micro-batch. Pass at least one.")
    return [checked(model, *batch) for batch in batches]


def count_targets(batches: Sequence[tuple[np.ndarray, np.ndarray]]) -> int:
    """Return the number of targets of all micro-batches, N in a step's mean; DataError if there is none."""
    if not (count := sum(np.count_nonzero(targets >= 0) for _, targets in batches)):
        raise DataError("no position of the batch has a target. Pass at least one of 0 or more.")
    return int(count)


class LocalSession:
    """State and rows of a session in one process, which holds all arrays."""

    model: Any
    optimizer: Any

    def state(self) -> State:
        """Return the arrays of model and optimizer."""
        return state_of(self.model, self.optimizer)

    def own(self) -> State:
        """Return all arrays, which this process saves."""
        return self.state()

    def rows(self, count: int) -> slice:
        """Return all rows, which this process reads."""
        return slice(0, count)
