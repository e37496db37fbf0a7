"""Muon, groups and averages on devices: what NumPy computes, on every mesh."""

import numpy as np
import pytest

from byhand.config import OptimConfig
from runtimes.xla.models import losses, session

MUON = OptimConfig(optimizer="muon", embedding_lr=6e-3, vector_lr=1e-3, ema=0.9, grad_clip=1.0)
MESHES = (
    "", "fsdp=2", "tensor=2", "data=2,fsdp=2,tensor=2",
    *(pytest.param(mesh, marks=pytest.mark.slow) for mesh in ("data=2", "sequence=2")),  # which divide no parameter
)  # fmt: skip


@pytest.fixture(scope="module")
def reference():
    made = session(runtime="numpy", optim=MUON)
    return losses(made, 4), made


@pytest.mark.parametrize("mesh", MESHES)
def test_steps_are_those_of_the_reference(reference, mesh):
    expected, plain = reference
    made = session(optim=MUON, mesh=mesh)
    np.testing.assert_allclose(losses(made, 4), expected, rtol=2e-4)
    for part, other in zip(made.state().dictionaries(), plain.state().dictionaries(), strict=True):
        assert set(part) == set(other)
        for name, array in part.items():
            np.testing.assert_allclose(array, other[name], rtol=0, atol=2e-3, err_msg=name)


def test_the_loss_of_the_average_is_that_of_its_arrays():
    made = session(optim=MUON, mesh="fsdp=2")
    losses(made, 2)
    tokens, targets = np.zeros((2, 2, 8), int)
    last, average = (made.loss(tokens, targets, average=which) for which in (False, True))
    for name, array in made.state().averages.items():
        made.model.parameters()[name].data = np.array(array)
    assert made.loss(tokens, targets) == pytest.approx(average, rel=1e-6)
    assert average != last
