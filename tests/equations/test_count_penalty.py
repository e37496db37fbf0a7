import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import count_penalty
from byhand.errors import ShapeError
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, integers, shapes


@st.composite
def cases(draw):
    shape = draw(shapes(1))
    f, p = (draw(st.sampled_from((-0.5, 0.0, 1.25))) for _ in range(2))
    return Case(draw(arrays(*shape)), draw(integers(*shape, below=4)), f=f, p=p)


def witnesses(torch):
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 3, (4, 7))

    def theirs(z, n):
        return z - n.to(z.dtype) * 0.3 - (n > 0).to(z.dtype) * 0.9

    return [(theirs, (rng.normal(0, 2, (4, 7)), counts), {"f": 0.3, "p": 0.9})]


@given(cases())
def test_forward_subtracts_by_count_and_once(case):
    (logits, counts), f, p = case.inputs, case.static["f"], case.static["p"]
    z, _ = count_penalty.forward(logits, counts, f=f, p=p)
    for index in np.ndindex(z.shape):
        close(z[index], logits[index] - (p if counts[index] else 0) - sum(f for _ in range(counts[index])))


def test_bans_stay_bans_and_the_type_stays():
    z, _ = count_penalty.forward(np.array([-np.inf, 1], np.float32), np.array([2, 2]), f=0.5, p=1.0)
    assert (z.tolist(), z.dtype) == ([-np.inf, -1], np.float32)


def test_typical_mistakes():
    case = Case(np.array([3.0, -1.0, 3.0]), np.array([2, 3, 0]), f=0.5, p=1.0)
    once, each = "subtracted f once, however often it was drawn", "subtracted p for each occurrence"
    assert wrong_numbers(count_penalty, case, (0,)) == {once: 1.5, each: 0}
    assert wrong_numbers(count_penalty, case, (1,)) == {once: -2.5, each: -5.5}
    assert wrong_numbers(count_penalty, case, (2,)) == {}


def test_counts_are_integers_for_each_logit():
    with pytest.raises(ShapeError, match="counts must be integers, not float64"):
        count_penalty.forward(np.ones(3), np.ones(3), f=1.0, p=0.0)
    with pytest.raises(ShapeError, match=r"counts are \(2,\), but logits \(3,\)"):
        count_penalty.forward(np.ones(3), np.ones(2, int), f=1.0, p=0.0)
