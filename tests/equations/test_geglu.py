import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.geglu import geglu
from byhand.equations.gelu import gelu
from byhand.errors import ShapeError
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    shape = draw(shapes())
    return Case(draw(st.sampled_from((0.1, 1.0, 3.0))) * draw(arrays(*shape)), draw(arrays(*shape)))


@given(cases())
def test_it_is_gelu_of_the_gate_times_up(case):
    gate, up = case.inputs
    y, saved = geglu.forward(gate, up)
    opened, saved_gelu = gelu.forward(gate)
    close(y, opened * up)
    d = np.cos(y)
    d_gate, d_up = geglu.vjp(saved, d)
    close(d_gate, gelu.vjp(saved_gelu, d * up)[0])
    close(d_up, d * opened)


def test_gate_and_up_have_one_shape():
    with pytest.raises(ShapeError, match=r"geglu: gate \(2, 3\) and up \(3,\) differ in shape"):
        geglu.forward(np.ones((2, 3)), np.ones(3))


def test_typical_mistakes():
    def gelu_of(x, cubic=0.044715):
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + cubic * x**3)))

    gate, up = np.array([0.5, 2.0]), np.array([1.0, -3.0])
    case = Case(gate, up)
    assert wrong_numbers(geglu, case, (1,)) == pytest.approx(
        {
            "took GELU of the other factor: gate and up swapped": 2 * gelu_of(-3),
            "gated by SiLU: that is SwiGLU": 2 / (1 + np.exp(-2)) * -3,
            "forgot the cubic term": gelu_of(2, 0) * -3,
            "forgot the factor up": gelu_of(2),
        }
    )
    (wrong,) = wrong_numbers(geglu, case, (1,), np.array([1.0, 0.5])).values()
    assert wrong == pytest.approx(0.5 * (gelu_of(2 + 1e-6) - gelu_of(2 - 1e-6)) / 2e-6)


def witnesses(torch):
    """What PyTorch computes."""
    rng = np.random.default_rng(5)
    gate, up = 3 * rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    return [(lambda g, u: torch.nn.functional.gelu(g, approximate="tanh") * u, (gate, up), {})]
