import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import adamw
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    shape, t = draw(shapes()), draw(st.sampled_from((1, 2, 10)))
    theta, g, m = (draw(arrays(*shape)) for _ in range(3))
    v = draw(arrays(*shape, gap=0.1)) ** 2
    settings = {"beta1": 0.8, "beta2": 0.95, "eps": draw(st.sampled_from((1e-8, 0.1))), "weight_decay": 0.3}
    return Case(theta, g, m, v, np.array(0.2), np.array(t), **settings)


SETTINGS = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01}


@given(cases())
def test_forward_is_algorithm_2(case):
    theta, g, m, v, lr, t = case.inputs
    s = case.static
    results, _ = adamw.forward(*case.inputs, **s)
    for i in np.ndindex(theta.shape):
        new_m = s["beta1"] * m[i] + (1 - s["beta1"]) * g[i]
        new_v = s["beta2"] * v[i] + (1 - s["beta2"]) * g[i] ** 2
        m_hat, v_hat = new_m / (1 - s["beta1"] ** int(t)), new_v / (1 - s["beta2"] ** int(t))
        decayed = theta[i] - lr * s["weight_decay"] * theta[i]
        close([r[i] for r in results], [decayed - lr * m_hat / (math.sqrt(v_hat) + s["eps"]), new_m, new_v])


def test_the_first_step_is_lr_whatever_the_gradient():
    theta, zero = np.array([1.0, 1.0, 1.0]), np.zeros(3)
    (new, m, v), _ = adamw.forward(theta, np.array([1e-3, -5.0, 1e3]), zero, zero, 0.1, 1, **SETTINGS)
    close(new, [1 - 0.001 - 0.1, 1 - 0.001 + 0.1, 1 - 0.001 - 0.1], 1e-5)
    close(m, [1e-4, -0.5, 100])
    close(v, [1e-9, 0.025, 1000])


def test_several_steps_against_the_closed_form():
    """With a constant gradient both corrected means are constant, and every step moves by the same lr."""
    theta, m, v = np.array([2.0]), np.zeros(1), np.zeros(1)
    settings = SETTINGS | {"weight_decay": 0.0}
    for t in range(1, 8):
        (theta, m, v), _ = adamw.forward(theta, np.array([3.0]), m, v, 0.01, t, **settings)
        close(theta, [2.0 - 0.01 * t], 1e-9)
        close(m, [3.0 * (1 - 0.9**t)])
        close(v, [9.0 * (1 - 0.999**t)])


def test_no_gradient_ever_only_decays():
    zero = np.zeros(1)
    (new, m, v), _ = adamw.forward(np.array([2.0]), zero, zero, zero, 0.1, 1, **SETTINGS)
    close(new, [2.0 * (1 - 0.1 * 0.01)])
    assert (m[0], v[0]) == (0, 0)


def test_the_slope_of_the_root_is_taken_as_zero_where_v_is_zero():
    one, zero = np.ones(1), np.zeros(1)
    _, saved = adamw.forward(one, zero, one, zero, 0.1, 1, **SETTINGS)
    _, _, d_m, d_v, _, _ = adamw.vjp(saved, (one, zero, zero), **SETTINGS)
    close(d_v, [0])
    close(d_m, [-0.1 * 0.9 / (0.1 * 1e-8)], 1e-9)


def test_shapes_must_agree():
    with pytest.raises(ShapeError, match="must have one shape"):
        adamw.forward(np.ones(2), np.ones(3), np.ones(2), np.ones(2), 0.1, 1, **SETTINGS)
