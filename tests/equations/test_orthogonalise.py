import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import orthogonalise
from byhand.equations.orthogonalise import A, B, C
from byhand.errors import ShapeError
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, lengths, shapes


@st.composite
def cases(draw):
    shape = (*draw(shapes(0, 1)), draw(lengths), draw(lengths))
    return Case(draw(arrays(*shape, gap=0.2)), steps=draw(st.sampled_from((1, 2, 5))), eps=1e-7)


def polynomial(s, steps):
    for _ in range(steps):
        s = A * s + B * s**3 + C * s**5
    return s


@given(cases())
def test_the_singular_values_go_through_the_polynomial_and_the_vectors_stay(case):
    (g,) = case.inputs
    steps = case.static["steps"]
    made, _ = orthogonalise.forward(g, **case.static)
    u, s, vt = np.linalg.svd(g, full_matrices=False)
    norm = np.sqrt((s**2).sum(axis=-1, keepdims=True)) + 1e-7
    close(made, (u * polynomial(s / norm, steps)[..., None, :]) @ vt, 1e-9)


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_five_steps_make_any_usual_matrix_nearly_orthogonal(shape):
    g = np.random.default_rng(0).standard_normal(shape)
    made, _ = orthogonalise.forward(g)
    values = np.linalg.svd(made, compute_uv=False)
    assert 0.6 < values.min() <= values.max() < 1.25


def test_scaling_changes_nothing():
    g = np.random.default_rng(1).standard_normal((3, 5))
    close(orthogonalise.forward(1e3 * g)[0], orthogonalise.forward(g)[0], 1e-5)


def test_a_transposed_matrix_gives_the_transposed_result():
    g = np.random.default_rng(2).standard_normal((3, 5))
    close(orthogonalise.forward(g.T)[0], orthogonalise.forward(g)[0].T)


def test_nothing_stays_nothing_and_has_a_finite_slope():
    zero = np.zeros((2, 3))
    made, saved = orthogonalise.forward(zero)
    assert not made.any()
    (d_g,) = orthogonalise.vjp(saved, np.ones((2, 3)))
    close(d_g, np.full((2, 3), A**5 / 1e-7), 1e-9)


def test_a_vector_is_refused():
    with pytest.raises(ShapeError, match="needs a matrix"):
        orthogonalise.forward(np.ones(3))


def test_mistakes():
    """Rows at right angles of lengths 3 and 4: A is diagonal."""
    case = Case(np.array([[3.0, 0], [0, 4.0]]), steps=1, eps=0.0)
    found = wrong_numbers(orthogonalise, case, (0, 0))
    assert found["forgot the products: only a X"] == pytest.approx(A * 0.6)
    assert found["forgot the term a X"] == pytest.approx(B * 0.6**3 + C * 0.6**5)


def newton_schulz(x):
    """The five steps in PyTorch, without transposing tall matrices."""
    x = x / (x.square().sum((-2, -1), keepdim=True).sqrt() + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    return x


def witnesses(torch):
    """What PyTorch computes: wide and tall matrices."""
    rng = np.random.default_rng(7)
    return [(newton_schulz, (rng.standard_normal(shape),), {}) for shape in ((3, 5), (2, 4, 3))]
