"""Steps by XLA on any mesh: those of one device, of which each device holds its share."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from byhand.errors import ConfigError
from byhand.runtimes.xla import compiling
from byhand.runtimes.xla.mesh import AXES
from runtimes.registered import new_session
from runtimes.steps import batches, curve, made
from runtimes.xla.models import FAMILY, PLAIN, steps_of_one_device

LIKE_ONE_DEVICE = 1e-5  # of the loss, over the steps


@pytest.mark.parametrize(
    ("mesh", "name"),
    [
        ("fsdp=2,sequence=2,tensor=2", "other"),
        *(pytest.param(mesh, name, marks=pytest.mark.slow)
          for mesh, name in (("data=2,fsdp=2,tensor=2", "grouped"), ("sequence=2", "normed"))),
    ],
)  # fmt: skip
def test_devices_that_share_the_work_make_the_same_steps(mesh, name):
    """Each axis alone, and three at once; all meshes with all models under `-m slow`."""
    (one, expected), many = steps_of_one_device(name, 10), new_session(FAMILY[name], runtime="xla", mesh=mesh)
    np.testing.assert_allclose(curve(many, 10, rows=(8,)), expected, rtol=LIKE_ONE_DEVICE)
    (batch,) = batches(PLAIN, 0, (8,))
    assert many.loss(*batch) == pytest.approx(one.loss(*batch), rel=LIKE_ONE_DEVICE)
    for name, array in one.state().parameters.items():
        np.testing.assert_allclose(many.state().parameters[name], array, rtol=0, atol=1e-4, err_msg=name)


SIZES = (1, 2, 4, 8)
MESHES = [
    ",".join(f"{name}={n}" for name, n in zip(AXES, sizes, strict=True) if n > 1)
    for sizes in product(SIZES, repeat=len(AXES))
    if 1 < math.prod(sizes) <= 8
]


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("mesh", MESHES)
def test_fifty_steps_on_every_mesh_are_those_of_one_device(mesh, name):
    many = curve(new_session(FAMILY[name], runtime="xla", mesh=mesh), 50, rows=(8,))
    differ = np.abs(many / steps_of_one_device(name, 50)[1] - 1).max(axis=0)
    print(f"{mesh}, {name}: losses within {differ[0]:.1e}, norms within {differ[1]:.1e}")
    assert differ[0] < LIKE_ONE_DEVICE


def test_each_device_holds_its_share():
    shared = new_session(PLAIN, runtime="xla", mesh="fsdp=2,tensor=4")
    shared._take_over()
    held, c = shared._held[0], PLAIN.d_model
    shapes = {name: {s.data.shape for s in array.addressable_shards} for name, array in held.items()}
    assert shapes["wte"] == {(PLAIN.vocab_size // 4, c // 2)}
    assert shapes["blocks.0.attn.w_qkv"] == {(3, c // 2, 3, c // 4)}
    assert shapes["blocks.0.attn.w_proj"] == {(3, c // 4, c // 2)}
    assert shapes["blocks.0.mlp.w_out"] == {(3, c, c // 2)}
    assert shapes["lm_head.b"] == {(PLAIN.vocab_size // 4,)}


def test_what_is_compiled_and_for_how_many_rows_is_said(caplog, monkeypatch):
    caplog.set_level("INFO", "byhand")
    monkeypatch.setattr(compiling, "compiled", lambda lowered: None)
    session = new_session(replace(PLAIN, n_layers=1), runtime="xla", mesh="data=2")
    session.prepare([(3, 8)], [])
    assert caplog.text.count("2 devices cannot share 3 rows: each computes all.") == 1
    assert "compiling the step of 3 × 8 tokens for data=2" in caplog.text
    session._made.clear()


def test_a_mesh_of_more_devices_than_there_are_is_refused():
    with pytest.raises(ConfigError, match="mesh data=16 has 16 devices, but 8"):
        new_session(PLAIN, runtime="xla", mesh="data=16").loss(*made(PLAIN, (4, 8))[0])
