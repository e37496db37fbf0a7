"""Steps by XLA: NumPy's losses, whatever the mesh; state that others can take over; refusals."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from byhand.config import OptimConfig
from byhand.errors import ConfigError, DataError, ShapeError
from byhand.runtimes.xla.mesh import AXES
from model_cases import every_setting, setting_name
from runtimes.xla.models import FAMILY, OTHER, PLAIN, batches, losses, session, steps_of_one_device

LIKE_ONE_DEVICE = 1e-5  # of the loss, over the steps


def test_fifty_steps_are_the_tapes():
    np.testing.assert_allclose(losses(session(), 50), losses(session(runtime="numpy"), 50), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("config", every_setting(), ids=setting_name)
def test_fifty_steps_of_every_variant_are_the_tapes(config):
    np.testing.assert_allclose(losses(session(config), 50), losses(session(config, "numpy"), 50), rtol=1e-4)


@pytest.mark.parametrize(
    ("mesh", "name"),
    [
        ("data=8", "other"), ("fsdp=4", "other"), ("tensor=2", "normed"), ("sequence=2", "normed"),
        ("data=2,fsdp=2,tensor=2", "other"), ("data=2,fsdp=2,tensor=2", "grouped"),
        ("fsdp=2,sequence=2,tensor=2", "other"), ("fsdp=2,sequence=2,tensor=2", "grouped"),
    ],
)  # fmt: skip
def test_devices_that_share_the_work_make_the_same_steps(mesh, name):
    """Each axis alone, and three at once; all meshes with all models under `-m slow`."""
    (one, expected), many = steps_of_one_device(name, 10), session(FAMILY[name], mesh=mesh)
    np.testing.assert_allclose(losses(many, 10, rows=8), expected, rtol=LIKE_ONE_DEVICE)
    (batch,) = batches(1, rows=8)
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
    many = losses(session(FAMILY[name], mesh=mesh), 50, rows=8)
    differ = np.abs(many / steps_of_one_device(name, 50)[1] - 1).max(axis=0)
    print(f"{mesh}, {name}: losses within {differ[0]:.1e}, norms within {differ[1]:.1e}")
    assert differ[0] < LIKE_ONE_DEVICE


def test_each_device_holds_its_share():
    shared = session(PLAIN, mesh="fsdp=2,tensor=4")
    losses(shared, 1)
    held, c = shared._held[0], PLAIN.d_model
    shapes = {name: {s.data.shape for s in array.addressable_shards} for name, array in held.items()}
    assert shapes["wte"] == {(PLAIN.vocab_size // 4, c // 2)}
    assert shapes["blocks.0.attn.w_qkv"] == {(3, c // 2, 3, c // 4)}
    assert shapes["blocks.0.attn.w_proj"] == {(3, c // 4, c // 2)}
    assert shapes["blocks.0.mlp.w_out"] == {(3, c, c // 2)}
    assert shapes["lm_head.b"] == {(PLAIN.vocab_size // 4,)}


def test_rows_that_the_devices_cannot_share_are_computed_by_all(caplog):
    caplog.set_level("INFO", "byhand")
    np.testing.assert_allclose(losses(session(mesh="data=2"), 2, rows=3), losses(session(), 2, rows=3), rtol=1e-6)
    np.testing.assert_allclose(losses(session(mesh="sequence=3"), 2), losses(session(), 2), rtol=1e-6)
    assert caplog.text.count("2 devices cannot share 3 rows: each computes all.") == 1
    assert "compiling the step of 3 × 8 tokens for data=2" in caplog.text


@pytest.mark.parametrize("cuts", [(2, 4, 6), (2,)], ids=["equal", "unequal"])
def test_micro_batches_are_a_batch(cuts):
    whole, parts = session(mesh="data=2"), session(mesh="data=2")
    for i in range(3):
        ((tokens, targets),) = batches(1, rows=8, seed=i)
        cut = list(zip(np.split(tokens, cuts), np.split(targets, cuts), strict=True))
        a, b = whole.step([(tokens, targets)], 0.1), parts.step(cut, 0.1)
        assert (b.loss, b.norm) == pytest.approx((a.loss, a.norm), rel=1e-6)


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one():
    whole, first, second = (session(mesh="fsdp=2") for _ in range(3))
    expected = losses(whole, 6)
    losses(first, 3)
    state, second.optimizer.t = first.state(), first.optimizer.t
    for name, tensor in second.model.parameters().items():
        tensor.data = state.parameters[name].copy()
    second.optimizer.restore({k: {n: a.copy() for n, a in part.items()} for k, part in state.moments.items()}, {})
    found = []
    for i in range(3, 6):
        second.optimizer.lr = 3e-3
        found.append(second.step(batches(1, seed=i), 1.0).loss)
    assert found == expected[3:, 0].tolist()
    for name, array in whole.state().parameters.items():
        np.testing.assert_array_equal(second.state().parameters[name], array)


def test_arrays_that_were_exchanged_between_steps_are_taken_over():
    """One parameter is replaced: the others go on from the device."""
    ours, tapes = session(), session(runtime="numpy")
    losses(ours, 2), losses(tapes, 2)
    for each in (ours, tapes):
        each.model.parameters()["wte"].data = np.full((PLAIN.vocab_size, PLAIN.d_model), 0.01, np.float32)
    np.testing.assert_allclose(losses(ours, 2), losses(tapes, 2), rtol=1e-5)
    for ours_now, tapes_now in zip(ours.state().dictionaries(), tapes.state().dictionaries(), strict=True):
        for name, array in tapes_now.items():
            np.testing.assert_allclose(ours_now[name], array, rtol=0, atol=1e-4, err_msg=name)


def test_the_state_is_what_model_and_optimizer_hold():
    ours = session()
    before = {name: tensor.data.copy() for name, tensor in ours.model.parameters().items()}
    assert ours.state().moments["m"] == {}
    losses(ours, 1)
    state = ours.state()
    for name, tensor in ours.model.parameters().items():
        assert np.shares_memory(tensor.data, state.parameters[name])
        assert not np.array_equal(tensor.data, before[name])
    assert ours.optimizer.moments["m"].keys() == ours.optimizer.moments["v"].keys() == before.keys()


@pytest.mark.parametrize("read", [True, False])
def test_a_step_that_is_not_finite_changes_nothing(read):
    ours = session()
    losses(ours, 1)
    before = ours.state()
    ours.model.parameters()["wpe"].data = np.full_like(before.parameters["wpe"], 1e38)
    outcome = ours.step(batches(1), 1.0)
    if read:
        assert not math.isfinite(outcome.loss)
    state = ours.state()
    assert ours.optimizer.t == 1
    assert not math.isfinite(outcome.norm)
    assert ours.optimizer.t == 1
    np.testing.assert_array_equal(state.parameters["wte"], before.parameters["wte"])
    np.testing.assert_array_equal(state.moments["m"]["wte"], before.moments["m"]["wte"])


def test_all_parameters_decay_or_those_that_the_layers_name():
    for decay in ("all", "matrices"):
        settings = OptimConfig(decay=decay, weight_decay=0.5)
        config = replace(PLAIN, norm_affine=True)
        ours, tapes = session(config, optim=settings), session(config, "numpy", optim=settings)
        losses(ours, 3), losses(tapes, 3)
        for name, array in tapes.state().parameters.items():
            np.testing.assert_allclose(ours.state().parameters[name], array, rtol=0, atol=1e-5, err_msg=name)


def test_the_last_targets_alone_are_counted():
    ours, tapes = session(OTHER), session(OTHER, "numpy")
    (batch,) = batches(1)
    for counted in (None, 1, 5):
        assert ours.loss(*batch, counted) == pytest.approx(tapes.loss(*batch, counted), rel=1e-6)


def test_what_it_cannot_compute_is_said():
    ours = session()
    with pytest.raises(DataError, match="no micro-batch"):
        ours.step([], 1.0)
    with pytest.raises(ShapeError, match="do not match tokens"):
        ours.loss(np.zeros((1, 8), int), np.zeros((1, 7), int))
    with pytest.raises(DataError, match="9 tokens, but the model's seq_len is 8"):
        ours.loss(np.zeros((1, 9), int), np.zeros((1, 9), int))
    with pytest.raises(ConfigError, match="mesh data=16 has 16 devices, but 8"):
        session(mesh="data=16").loss(*batches(1)[0])
    ours.optimizer = None
    with pytest.raises(ConfigError, match="without an optimizer"):
        ours.step(batches(1), 1.0)
