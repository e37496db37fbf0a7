"""The expected loss: its direction in every argument, on Shakespeare, and on other texts."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.budget import expectation
from byhand.budget.expectation import Range, bytes_to_count, expected_loss, expected_range, most_passes, translated
from byhand.budget.n_grams import n_gram_losses

SHAKESPEARE = Path(__file__).resolve().parents[2] / "../shared/data/tinyshakespeare.txt"
SIZES = st.integers(1_000, 10**8)


@given(parameters=SIZES, tokens=SIZES, text=SIZES)
def test_more_of_anything_never_hurts(parameters, tokens, text):
    loss = expected_loss(parameters, tokens, 64, text)
    assert 0 < loss <= math.log(256)
    assert expected_loss(2 * parameters, tokens, 64, text) <= loss
    assert expected_loss(parameters, 2 * tokens, 64, text) <= loss
    assert expected_loss(parameters, tokens, 64, 2 * text) <= loss + 1e-12


def test_a_second_pass_is_worth_less_than_fresh_text():
    once, twice = (expected_loss(10**6, tokens, 64, 10**6) for tokens in (10**6, 10**7))
    fresh = expected_loss(10**6, 10**7, 64, 10**7)
    assert fresh < twice < once


def test_large_models_know_short_texts_by_heart_soon():
    assert most_passes(10**6, 10**5) < most_passes(10**5, 10**5) < most_passes(10**5, 10**6)


def parts(content):
    text = np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content
    cut = len(text) - round(len(text) / 10)
    return text[:cut], text[cut:]


def expected_on(loss, content, counted=expectation.COUNTED[-1]):
    train, val = parts(content)
    counted = min(counted, len(train))
    return expected_range(loss, n_gram_losses(train, val, counted), counted)


@pytest.mark.skipif(not SHAKESPEARE.exists(), reason="tinyshakespeare is not here")
def test_on_shakespeare_the_loss_is_what_the_law_says():
    content = np.fromfile(SHAKESPEARE, np.uint8)
    train, val = parts(content)
    assert expectation.COUNTED[-1] == len(train) // 2
    for counted, loss in zip(expectation.COUNTED, expectation.N_GRAMS, strict=True):
        assert min(n_gram_losses(train, val, counted)) == pytest.approx(loss, abs=6e-4)
    for loss in (3.5, 2.6, 2.0, 1.5):
        assert expected_on(loss, content).loss == pytest.approx(loss, abs=1e-3)


def test_no_tokens_are_expected_to_be_harder_than_by_chance():
    hard = expected_range(5.5, [5.5], 1)
    assert hard.of_tokens(3.5, 4096).loss == hard.of_tokens(3.5, 4096).low == math.log(4096)
    easy = Range(2.0, 1.9, 2.1).of_tokens(2.0, 4096)
    assert easy.low == pytest.approx(1.9 * 2**0.8)
    assert easy.low < easy.loss < easy.high < math.log(4096)


def test_an_easier_text_is_expected_to_be_easier():
    words = b"the quick brown fox jumps over the lazy dog; " * 1_000
    noise = np.random.default_rng(0).integers(0, 256, 50_000).astype(np.uint8)
    expected = [expected_on(loss, words) for loss in (3.6, 3.0, 2.4, 2.0, 1.6)]
    assert [e.loss for e in expected] == sorted((e.loss for e in expected), reverse=True)
    assert expected[-1].loss < 0.1
    assert 5.4 < expected_on(2.0, noise).loss <= math.log(256)
    assert all(e.low <= e.loss <= e.high for e in expected)
    assert expected[3].high - expected[3].low > 0.5  # so unlike Shakespeare that little is known


def test_n_grams_count_as_much_as_a_model_keeps():
    assert bytes_to_count(10**6, 10**6, 10**7) == 500_000  # half of what it reads
    assert bytes_to_count(10**6, 10**8, 10**6) == 500_000  # of how much there is
    assert bytes_to_count(10**4, 10**8, 10**8) == 50_000  # five bytes a weight
    assert bytes_to_count(10**4, 1, 1) == 1


@given(
    losses=st.lists(st.floats(1.5, 4), min_size=2, max_size=20),
    counted=st.integers(1, 10**7),
    seed=st.integers(0, 99),
)
def test_translating_keeps_the_order(losses, counted, seed):
    n_grams = np.random.default_rng(seed).uniform(0.5, 5, 4)
    here = [translated(loss, n_grams, counted) for loss in sorted(losses)]
    assert here == sorted(here)
    assert all(0 < h <= math.log(256) for h in here)
