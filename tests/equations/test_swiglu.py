import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.silu import silu
from byhand.equations.swiglu import swiglu
from byhand.errors import ShapeError
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    shape = draw(shapes())
    return Case(draw(st.sampled_from((0.1, 1.0, 3.0))) * draw(arrays(*shape)), draw(arrays(*shape)))


@given(cases())
def test_it_is_silu_of_the_gate_times_up(case):
    gate, up = case.inputs
    y, saved = swiglu.forward(gate, up)
    opened, saved_silu = silu.forward(gate)
    close(y, opened * up)
    d = np.cos(y)
    d_gate, d_up = swiglu.vjp(saved, d)
    close(d_gate, silu.vjp(saved_silu, d * up)[0])
    close(d_up, d * opened)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_ends_are_reached_without_overflow(dtype):
    gate, up = np.array([-1e20, -800, 0, 800, 1e20], dtype), np.array([-2, 3, 5, -7, 11], dtype)
    y, saved = swiglu.forward(gate, up)
    np.testing.assert_allclose(y, [0, 0, 0, -5600, dtype(1e20) * 11], rtol=1e-6)
    d_gate, d_up = swiglu.vjp(saved, np.ones_like(up))
    close(d_gate, [0, 0, 2.5, -7, 11])
    np.testing.assert_allclose(d_up, [0, 0, 0, 800, dtype(1e20)], rtol=1e-6)


def test_gate_and_up_have_one_shape():
    with pytest.raises(ShapeError, match=r"swiglu: gate \(2, 3\) and up \(3,\) differ in shape"):
        swiglu.forward(np.ones((2, 3)), np.ones(3))


def test_typical_mistakes():
    gate, up, open_ = np.array([0.5, 2.0]), np.array([1.0, -3.0]), 1 / (1 + math.exp(-2))
    case, other = Case(gate, up), 1 / (1 + math.exp(3))
    assert wrong_numbers(swiglu, case, (1,)) == pytest.approx(
        {
            "took the sigmoid of the other factor: gate and up swapped": 2 * -3 * other,
            "gated by the sigmoid alone: that is the original GLU": open_ * -3,
            "forgot the factor up": 2 * open_,
        }
    )
    assert wrong_numbers(swiglu, case, (1,), np.array([1.0, 0.5])) == pytest.approx(
        {"held the sigmoid constant": 0.5 * -3 * open_, "forgot the factor up": 0.5 * open_ * (1 + 2 * (1 - open_))}
    )


def witnesses(torch):
    """What PyTorch computes."""
    rng = np.random.default_rng(5)
    gate, up = 3 * rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    return [(lambda g, u: torch.nn.functional.silu(g) * u, (gate, up), {})]
