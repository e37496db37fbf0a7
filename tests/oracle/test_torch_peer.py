"""The peer of `byhand bench train` has as many numbers as our model, whatever its shape, and makes a step."""

import math

import pytest

from byhand import TinyGPT
from byhand.bench.shapes import OFFERED, shape_of
from byhand.bench.torch_peer import _model, torch_step

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("architecture", OFFERED)
@pytest.mark.parametrize("shape", ["2,8,24,2,4,17", "2,8,24/50,1,4/2,17", "2,8,30,1,2/1,17"])  # 15 wide: 14 turn
def test_the_peer_is_the_same_model(shape, architecture):
    asked = shape_of(shape, architecture)
    ours = sum(p.data.size for p in TinyGPT(asked.model(), 1).parameters().values())
    assert sum(p.numel() for p in _model(torch, asked).parameters()) == ours
    assert math.isfinite(torch_step(asked, compiled=False)())
