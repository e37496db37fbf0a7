import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import repetition_penalty
from byhand.errors import ShapeError
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, integers, shapes


@st.composite
def cases(draw):
    shape = draw(shapes(1))
    return Case(
        draw(arrays(*shape, gap=0.1)), draw(integers(*shape, below=3)), r=draw(st.sampled_from((0.5, 1.0, 1.3)))
    )


def witnesses(torch):
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 3, (4, 7))

    def theirs(z, n):
        return torch.where(n > 0, torch.where(z < 0, z * 1.7, z / 1.7), z)

    return [(theirs, (rng.normal(0, 2, (4, 7)), counts), {"r": 1.7})]


@given(cases())
def test_forward_scales_what_has_occurred(case):
    (logits, counts), r = case.inputs, case.static["r"]
    z, _ = repetition_penalty.forward(logits, counts, r=r)
    for index in np.ndindex(z.shape):
        factor = 1.0 if counts[index] == 0 else 1 / r if logits[index] > 0 else r
        close(z[index], logits[index] * factor)


def test_a_penalty_makes_no_logit_larger_and_bans_stay_bans():
    logits = np.array([2.0, -2.0, 0.0, -np.inf, 1.0])
    z, _ = repetition_penalty.forward(logits, np.array([1, 5, 1, 1, 0]), r=4.0)
    assert z.tolist() == [0.5, -8, 0, -np.inf, 1]


def test_typical_mistakes():
    case = Case(np.array([3.0, -1.0, 3.0]), np.array([2, 1, 0]), r=2.0)
    assert wrong_numbers(repetition_penalty, case, (0,)) == {"subtracted the penalty": 1}
    assert wrong_numbers(repetition_penalty, case, (1,)) == {
        "divided a negative logit too": -0.5, "subtracted the penalty": -3
    }  # fmt: skip
    assert wrong_numbers(repetition_penalty, case, (2,)) == {}


@pytest.mark.parametrize("r", [0.0, -1.0, float("nan")])
def test_r_must_be_positive(r):
    with pytest.raises(ShapeError, match="r must be positive"):
        repetition_penalty.forward(np.ones(3), np.ones(3, int), r=r)


def test_counts_are_integers_for_each_logit():
    with pytest.raises(ShapeError, match="counts must be integers, not float64"):
        repetition_penalty.forward(np.ones(3), np.ones(3), r=2.0)
    with pytest.raises(ShapeError, match=r"counts are \(2,\), but logits \(3,\)"):
        repetition_penalty.forward(np.ones(3), np.ones(2, int), r=2.0)
