import numpy as np
import pytest
from hypothesis import strategies as st

from byhand.equations import muon
from byhand.errors import ShapeError
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, lengths, shapes
from equations.test_orthogonalise import newton_schulz


@st.composite
def cases(draw):
    packed = draw(st.sampled_from((1, 2)))
    shape = (*draw(shapes(0, 1)), draw(lengths), packed * draw(lengths))
    theta, m = (draw(arrays(*shape)) for _ in range(2))
    g = draw(arrays(*shape, gap=2.0)) + 3 * np.abs(m).max()  # n stays away from 0, where it has no direction
    settings = {"momentum": 0.8, "weight_decay": 0.3, "packed": packed, "steps": draw(st.sampled_from((1, 3)))}
    return Case(theta, g, m, np.array(0.2), **settings)


LAWS = {"sources": False}  # every gradient of a matrix decides its direction
SETTINGS = {"momentum": 0.95, "weight_decay": 0.1}


def direction(n):
    """The five steps with their coefficients written out, on rows no longer than columns."""
    tall = n.shape[0] > n.shape[1]
    x = (n.T if tall else n) / (np.linalg.norm(n) + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return x.T if tall else x


@pytest.mark.parametrize("shape", [(4, 4), (3, 12), (12, 3)])
def test_forward_is_momentum_nesterov_and_the_direction(shape):
    rng = np.random.default_rng(0)
    theta, g, m = rng.standard_normal((3, *shape))
    (made, new), _ = muon.forward(theta, g, m, 0.02, **SETTINGS)
    close(new, 0.95 * m + 0.05 * g)
    inputs, outputs = shape
    step = max(1.0, outputs / inputs) ** 0.5 * direction(0.95 * new + 0.05 * g)
    close(made, theta - 0.02 * step - 0.02 * 0.1 * theta, 1e-9)


def test_packed_matrices_are_updated_as_if_they_were_alone():
    theta, g, m = np.random.default_rng(2).standard_normal((3, 4, 12))
    made, _ = muon.forward(theta, g, m, 0.02, **SETTINGS, packed=3)
    for i, part in enumerate(np.split(made[0], 3, axis=1)):
        alone = (np.split(x, 3, axis=1)[i] for x in (theta, g, m))
        close(part, muon.forward(*alone, 0.02, **SETTINGS)[0][0])


def test_the_size_of_the_gradient_decides_nothing():
    rng = np.random.default_rng(1)
    theta, g = rng.standard_normal((2, 3, 4))
    small, large = (muon.forward(theta, k * g, 0 * g, 0.1, **SETTINGS)[0][0] for k in (1e-2, 1e2))
    close(small, large, 1e-4)


def test_shapes_must_agree():
    with pytest.raises(ShapeError, match="must have one shape"):
        muon.forward(np.ones((2, 2)), np.ones((2, 3)), np.ones((2, 2)), 0.1, **SETTINGS)


def test_mistakes():
    theta, g, m = np.random.default_rng(3).standard_normal((3, 2, 2))
    case = Case(theta, g, m, np.array(0.1), **SETTINGS)
    (right, _), _ = muon.forward(*case.inputs, **SETTINGS)
    found, index = wrong_numbers(muon, case, (1, 0)), (1, 0)
    assert found["forgot the weight decay"] == pytest.approx(right[index] + 0.1 * 0.1 * theta[index])
    assert found["moved up the gradient"] == pytest.approx(2 * theta[index] - right[index])
    bare = theta[index] - 0.1 * (g[index] + 0.1 * theta[index])
    assert found["used the gradient without orthogonalising it"] == pytest.approx(bare)


def witnesses(torch):
    """What PyTorch computes, for one matrix and for three side by side."""
    rng = np.random.default_rng(8)

    def theirs(packed):
        def update(theta, g, m, lr):
            m = 0.95 * m + 0.05 * g
            parted = (0.95 * m + 0.05 * g).chunk(packed, dim=-1)
            direction = torch.cat([newton_schulz(part) for part in parted], dim=-1)
            stretch = max(1.0, parted[0].shape[-1] / parted[0].shape[-2]) ** 0.5
            return theta - lr * (stretch * direction + 0.1 * theta), m

        return update

    return [
        (
            theirs(packed),
            (*(rng.standard_normal((3, 4 * packed)) for _ in range(3)), np.asarray(0.02)),
            {"momentum": 0.95, "weight_decay": 0.1, "packed": packed},
        )
        for packed in (1, 3)
    ]
