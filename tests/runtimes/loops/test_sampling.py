"""Top-k and top-p of large vocabularies in loops: the tokens of the reference, whatever bins the logits fall into."""

from dataclasses import replace

import numpy as np
import pytest

from byhand.runtimes.loops.kernels.largest_logits import room_of
from byhand.runtimes.loops.program import controls
from byhand.runtimes.loops.run.replay import run_kernel
from byhand.runtimes.sampling import Sampling, draw
from runtimes.loops.test_tiles import GAP, Memory

LARGE = 50_257
ROWS = {
    "smooth": lambda rng: rng.normal(0, 2, LARGE),
    "with equals": lambda rng: np.round(rng.normal(0, 3, LARGE)),
    "all equal": lambda rng: np.full(LARGE, 1.5),
    "one far above": lambda rng: np.concatenate([rng.normal(0, 1, LARGE), [300.0]]),
    "close together": lambda rng: rng.normal(0, 1e-4, LARGE),
    "falling": lambda rng: -np.arange(LARGE) * 1e-3,
    "mostly banned": lambda rng: np.where(np.arange(LARGE) % 5000, -np.inf, rng.normal(0, 1, LARGE)),
    "small": lambda rng: rng.normal(0, 2, 7),
}
SETTINGS = (
    Sampling(1.0, top_k=1), Sampling(0.8, top_k=40), Sampling(1.0, top_k=LARGE - 1), Sampling(1.0, top_p=0.5),
    Sampling(0.7, top_p=0.95), Sampling(1.2, top_k=50, top_p=0.9), Sampling(1.0, top_k=20_001, top_p=0.999),
    Sampling(1.0, top_k=301, top_p=0.97, min_p=0.02),
)  # fmt: skip


def drawn(logits: np.ndarray, sampling: Sampling, uniform: float) -> int:
    """Return the token that the kernel draws."""
    given = np.zeros(controls.SETTINGS + 3)
    given[controls.TEMPERATURE], given[controls.TOP_K] = sampling.temperature, sampling.top_k or 0
    given[controls.TOP_P] = 1.0 if sampling.top_p is None else sampling.top_p
    given[controls.MIN_P] = np.log(sampling.min_p) if sampling.min_p else -np.inf
    given[controls.PENALTY], given[controls.SETTINGS] = 1.0, uniform
    vocab = len(logits)
    memory = Memory(5 * vocab + room_of(vocab) + 20 * GAP)
    places = {"logits": memory.put(logits), "allowed": memory.put(np.ones(vocab))}
    places |= {name: memory.put(np.zeros(1)) for name in ("occurred", "tokens", "position", "steps", "drawn")}
    room = memory.room(room_of(vocab) + vocab)
    run_kernel("sample", memory.numbers, (0, 0), given, rows=1, longest=1, vocab=vocab, part=0, parts=1,
               room=room, **places)  # fmt: skip
    memory.assert_untouched_from(room + room_of(vocab) + vocab)
    return int(memory.numbers.view(np.int32)[places["drawn"]])


@pytest.mark.parametrize("row", ROWS)
def test_tokens_are_those_of_the_reference(row):
    """In float64: float32 sums of so many probabilities are off by tokens. No p is a whole number of equal ones."""
    rng = np.random.default_rng(11)
    logits = ROWS[row](rng).astype(np.float32)
    for sampling in SETTINGS:
        divided = (logits / np.float32(sampling.temperature)).astype(np.float64)
        for uniform in (0.0, 0.3, 0.77, 0.99):
            expected = draw(divided, replace(sampling, temperature=1.0), uniform)
            assert drawn(logits, sampling, uniform) == expected, (sampling, uniform)
