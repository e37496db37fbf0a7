"""n-grams: against a plain count in Python, and on the shortest texts."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.budget.n_grams import DISCOUNT, ORDERS, SAMPLE, SCORED, n_gram_losses

LETTERS = st.lists(st.sampled_from(b"abc"), min_size=1, max_size=60).map(lambda c: np.array(c, np.uint8))


def plain(train: bytes, val: bytes, orders: int) -> list[float]:
    """The definition, byte by byte."""

    def mixed(counts: Counter[int], byte: int, shorter: float) -> float:
        total = sum(counts.values())
        seen = max(counts[byte] - DISCOUNT, 0)
        return (seen + DISCOUNT * len(counts) * shorter) / total if total else shorter

    def shorter(context: bytes, byte: int) -> float:
        """The probability by how many different bytes stand before a gram."""
        k = len(context)
        wider = {train[i : i + k + 2] for i in range(len(train) - k - 1)}
        counts = Counter(gram[-1] for gram in wider if gram[1:-1] == context)
        return mixed(counts, byte, shorter(context[1:], byte) if context else 1 / 256)

    def probability(context: bytes, byte: int) -> float:
        k = len(context)
        counts = Counter(train[i + k] for i in range(len(train) - k) if train[i : i + k] == context)
        return mixed(counts, byte, shorter(context[1:], byte) if context else 1 / 256)

    return [
        -sum(math.log(probability(val[max(0, i - k) : i], byte)) for i, byte in enumerate(val)) / len(val)
        for k in range(orders)
    ]


@given(train=LETTERS, val=LETTERS)
def test_it_is_what_a_plain_count_gives(train, val):
    found = n_gram_losses(train, val)
    assert len(found) == min(ORDERS, len(train), len(val))
    assert found == pytest.approx(plain(train.tobytes(), val.tobytes(), len(found)))


def test_probabilities_add_up_to_one():
    train = np.frombuffer(b"abracadabra", np.uint8)
    for k in range(ORDERS):
        context = b"abracadab"[:k]
        losses = [n_gram_losses(train, np.frombuffer(context + bytes([b]), np.uint8)) for b in range(256)]
        before = n_gram_losses(train, np.frombuffer(context, np.uint8)) if k else [0.0] * ORDERS
        joint = sum(math.exp(-(k + 1) * loss[k]) for loss in losses if len(loss) > k)
        context_alone = math.exp(-k * before[min(k, len(before)) - 1]) if k else 1.0
        assert joint == pytest.approx(context_alone)


def test_what_repeats_is_predicted_and_what_is_random_is_not():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, 50_000).astype(np.uint8)
    assert min(n_gram_losses(noise[:40_000], noise[40_000:])) > 5.5
    same = np.zeros(5_000, np.uint8)
    assert n_gram_losses(same, same)[-1] < 0.01


def test_long_texts_are_sampled_evenly():
    """Halves of different letters: both are counted, and both are scored."""
    half = SAMPLE * 2
    text = np.repeat(np.array([65, 66], np.uint8), half)
    assert n_gram_losses(text, text[half - SCORED : half + SCORED])[0] == pytest.approx(math.log(2), rel=0.01)
