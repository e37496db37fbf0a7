"""What the page about training and generation says in prose about its generated numbers."""

import math

import numpy as np
import pytest

from book.pages.asked import answers_of
from byhand.clipping import clip_gradients, gradient_norm
from byhand.equations.softmax import softmax
from byhand.equations.top_p import top_p

training = answers_of("guides/training-and-generation")


def test_the_mean_of_micro_batches_is_the_gradient_of_the_batch():
    first, second, whole = training.micro_batches()
    np.testing.assert_allclose((first + second) / 2, whole, rtol=1e-12, atol=1e-15)


def test_the_small_run_learns_its_words_by_heart():
    rows, before, after = training.small_run(0.05, (0, 1, 10, 50, 100))
    losses = [loss for _, loss, _ in rows]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.01
    assert before != after == list(training.REVERSED[1:])
    for _, loss, p in rows:
        assert loss == pytest.approx(-np.log(p).mean())


def test_the_answers_to_the_questions():
    g = {"w": np.array([6.0, 8.0])}
    np.testing.assert_allclose(clip_gradients(g, gradient_norm(g), 1.0)["w"], [0.6, 0.8])
    z = np.array([2.0, 1.0, 0.0, -1.0])
    assert f"{softmax.forward(z)[0][:2].sum():.2f}" == "0.88"
    assert np.isfinite(top_p.forward(z, p=0.9)[0]).tolist() == [True, True, True, False]
    assert f"{math.log(2):.2f}" == "0.69"
