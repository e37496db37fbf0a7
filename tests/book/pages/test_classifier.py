"""What the page about the small classifier says in prose about its generated numbers."""

import pytest

from book.pages.asked import answers_of
from byhand.book.lessons.examples import make
from byhand.book.words.language import say

classifier_run = answers_of("guides/classifier").classifier_run
SHOWN = (0, 1, 2, 5, 10, 20, 40)


@pytest.fixture(scope="module")
def trained():
    return {n: (loss, right) for n, loss, right in classifier_run(*SHOWN)}


def test_the_first_update_is_that_of_the_lesson(trained):
    worked = {say(n.label, "en"): n.value for step in make("classifier").steps for n in step.numbers}
    assert [trained[n][0] for n in (0, 1)] == pytest.approx([worked["L"], worked["L'"]], abs=1e-7)


def test_horizontal_bars_gain_more_than_vertical_ones_lose(trained):
    (_, before), (_, after) = trained[0], trained[1]
    assert after[2] > before[2]
    assert after[0] < before[0]
    assert after[2] / before[2] > before[0] / after[0]  # in nats


def test_momentum_overshoots_while_the_loss_goes_on_falling(trained):
    losses = [trained[step][0] for step in SHOWN]
    assert losses == sorted(losses, reverse=True)
    counts = {step: int((trained[step][1] > 0.5).sum()) for step in SHOWN}
    assert counts[5] == 2 < counts[2] == counts[10] == 4
    assert 0.45 < trained[5][1][0] < 0.5
