"""Steps of a session and what it then holds, in one form for all runtimes."""

from __future__ import annotations

import numpy as np

ROWS = (4, 2)  # of the micro-batches of a step: XLA compiles one program for all tests that make such steps


def batches(config, step, rows=ROWS):
    """Return a step's micro-batches of a text in which there is something to learn."""
    text = np.cumsum(np.random.default_rng(0).integers(0, 3, 500)) % config.vocab_size
    starts = np.split(
        np.random.default_rng([1, step]).integers(0, 500 - config.seq_len - 1, sum(rows)), np.cumsum(rows)
    )
    windows = [np.stack([text[s : s + config.seq_len + 1] for s in part]) for part in starts[: len(rows)]]
    return [(window[:, :-1].copy(), window[:, 1:].copy()) for window in windows]


def curve(session, steps, first=0, rows=ROWS, max_norm=1.0):
    """Make steps at a falling rate, and return their losses and norms (steps, 2)."""
    found = []
    for step in range(first, first + steps):
        session.optimizer.lr = session.optimizer.settings.lr * (1 - step / 200)
        outcome = session.step(batches(session.model.config, step, rows), max_norm)
        found.append((outcome.loss, outcome.norm))
    return np.array(found)


def made(config, *shapes, seed=0):
    """Return batches of random ids, of these shapes."""
    rng = np.random.default_rng(seed)
    return [tuple(rng.integers(0, config.vocab_size, shape) for _ in range(2)) for shape in shapes]


def copied(session):
    """Return the session's state in new arrays that can be written to."""
    state = session.state()
    return state.each(lambda part: {name: np.array(array) for name, array in part.items()}, state)


def put(session, state, t):
    """Continue a session from a state after t steps."""
    for name, parameter in session.model.parameters().items():
        parameter.data = state.parameters[name].copy()
    state = state.each(lambda part: {name: array.copy() for name, array in part.items()}, state)
    session.optimizer.restore(state.moments, state.averages)
    session.optimizer.t = t


def bits(session):
    """Return the bytes of all that a session holds, by the place in its state."""
    parts = session.state().dictionaries()
    return {(i, name): array.tobytes() for i, part in enumerate(parts) for name, array in part.items()}


def expect_close(state, other, atol, **tolerances):
    """Hold all arrays of a state against another's; a kind of them, such as `m`, may have a tolerance of its own."""
    kinds = ("parameters", *other.moments, "averages")
    for kind, part, expected in zip(kinds, state.dictionaries(), other.dictionaries(), strict=True):
        assert part.keys() == expected.keys(), kind
        for name, array in expected.items():
            near = tolerances.get(kind, atol)
            np.testing.assert_allclose(part[name], array, rtol=0, atol=near, err_msg=f"{kind}.{name}")
