"""Bytes to batches."""

import numpy as np
import pytest

from byhand.corpus.dataset import ByteDataset, batch_generator
from byhand.errors import DataError

TOKENS = (np.arange(1000) % 251).astype(np.uint8)


def test_targets_are_the_tokens_shifted_by_one():
    tokens, targets = ByteDataset(TOKENS).sample_batch(8, 16, np.random.default_rng(0))
    assert tokens.shape == targets.shape == (8, 16)
    assert tokens.dtype == targets.dtype == np.int64
    np.testing.assert_array_equal(tokens[:, 1:], targets[:, :-1])
    np.testing.assert_array_equal((tokens[:, -1] + 1) % 251, targets[:, -1])


def test_every_window_can_be_drawn_and_none_runs_past_the_end():
    rng = np.random.default_rng(0)
    starts = {int(t[0]) for _ in range(50) for t in ByteDataset(TOKENS[:20]).sample_batch(8, 16, rng)[0]}
    assert starts == {0, 1, 2, 3}


def test_a_batch_depends_on_its_number_and_the_seed_alone():
    def batch(seed: int, number: int) -> bytes:
        return ByteDataset(TOKENS).sample_batch(4, 8, batch_generator(seed, number))[0].tobytes()

    assert batch(1, 7) == batch(1, 7)
    assert len({batch(s, n) for s in range(3) for n in range(10)}) == 30


def test_spread_windows_reach_from_the_first_byte_to_the_last():
    tokens, targets = ByteDataset(TOKENS).spread_windows(10, 16)
    assert len(tokens) == 10
    assert tokens[0, 0] == TOKENS[0]
    assert targets[-1, -1] == TOKENS[-1]


def test_spread_windows_are_all_windows_of_a_short_text():
    assert len(ByteDataset(TOKENS[:20]).spread_windows(10, 16)[0]) == 4


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
def test_split_keeps_every_byte_once(fraction):
    train, val = ByteDataset(TOKENS).split(fraction, 16)
    assert len(val) == round(1000 * fraction)
    np.testing.assert_array_equal(np.concatenate([train.tokens, val.tokens]), TOKENS)


def test_more_windows_than_the_text_has_take_no_more_memory():
    assert len(ByteDataset(TOKENS[:20]).spread_windows(10**15, 16)[0]) == 4


def test_too_short_a_text_says_how_long_it_must_be():
    with pytest.raises(DataError, match=r"notes holds 40 bytes, but seq_len 64 needs at least 65. .*--seq-len 32"):
        ByteDataset(TOKENS[:40], "notes").require(64)
