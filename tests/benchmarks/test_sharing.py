"""What XLA counts for a mesh, against what the arithmetic of the exchanges says."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")

from sharing import _groups

from byhand.errors import ConfigError
from byhand.flops import step_flops
from byhand.model import parameter_shapes
from byhand.runtimes.xla.placing import sent
from runtimes.xla.models import COUNTED as MODEL
from runtimes.xla.models import share

N = sum(int(np.prod(shape)) for shape in parameter_shapes(MODEL).values())


def moved(share, kind):
    return sum(n for (what, _), n in share.moved.items() if what == kind)


def test_one_device_computes_all_and_sends_nothing():
    """XLA counts each product as the equations do, and further operations."""
    alone = share("")
    assert not any(alone.moved.values())
    products = step_flops(MODEL, 8)
    assert products < alone.flops < 1.5 * products
    assert alone.held == pytest.approx(3 * 4 * N, rel=0.01)


@pytest.mark.parametrize("mesh", ["data=8", pytest.param("fsdp=8", marks=pytest.mark.slow), "data=2,fsdp=4"])
def test_every_gradient_is_summed_once(mesh):
    """A ring sends 2 (n-1)/n of what it sums, (n-1)/n of what it scatters or gathers."""
    there = share(mesh)
    n_fsdp = 8 if mesh == "fsdp=8" else 4 if "fsdp" in mesh else 1
    tables = sum(int(np.prod(shape)) for shape in parameter_shapes(MODEL).values() if len(shape) > 1)
    scattered = moved(there, "reduce-scatter")
    if n_fsdp == 1:
        assert moved(there, "all-reduce") == pytest.approx(2 * 7 / 8 * 4 * N, rel=0.01)
        assert scattered == 0
    else:
        share_of = (n_fsdp - 1) / n_fsdp * 4
        assert share_of * tables <= scattered <= share_of * N
    alone = share("").flops / 8
    assert alone <= there.flops <= 1.3 * alone  # devices that hold the same parameters update each of them
    vectors = N - tables  # of these the devices share some
    assert 12 * N / n_fsdp <= there.held <= 1.01 * 12 * (tables / n_fsdp + vectors)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_positions_share_the_products_and_sum_gradients_once(dtype):
    """Forward, keys and values are gathered; back, their gradients are summed where they belong."""
    there, alone = share("sequence=4", dtype=dtype), share("", dtype=dtype)
    assert alone.flops / 4 <= there.flops <= 1.2 * alone.flops / 4
    streams = 2 * MODEL.n_layers * 8 * MODEL.seq_len * MODEL.d_model * 4  # bytes of all keys and values
    for kind in ("all-gather", "reduce-scatter"):
        assert moved(there, kind) == pytest.approx(3 / 4 * streams, rel=0.01)
    assert moved(there, "all-reduce") == pytest.approx(2 * 3 / 4 * 4 * N, rel=0.01)


@pytest.mark.slow
def test_positions_and_heads_are_shared_at_once():
    assert share("sequence=2,tensor=2").held < share("").held


def test_what_crosses_hosts_is_told_apart():
    """Of a ring through two hosts of four, two of the eight devices send to the other host; all do if each is one."""
    near, far, alone = (share("data=8", per_host=n) for n in (8, 4, 1))
    assert not any(crosses for _, crosses in near.moved)
    assert all(crosses for _, crosses in alone.moved)
    whole = sum(near.moved.values())
    assert sum(n for (_, crosses), n in far.moved.items() if crosses) == pytest.approx(whole / 4)
    assert whole == pytest.approx(sum(far.moved.values())) == pytest.approx(sum(alone.moved.values()))


def test_bfloat16_gathers_what_is_multiplied_in_two_bytes():
    """Forward and back, in the loops over the blocks; embeddings and head in float32, once and beside them."""
    there = share("fsdp=4", dtype="bfloat16")
    shapes = parameter_shapes(MODEL).items()
    outside, blocks = (
        sum(int(np.prod(shape)) for name, shape in shapes if len(shape) > 1 and name.startswith("blocks") is inside)
        for inside in (False, True)
    )
    assert there.looped["all-gather", False] == pytest.approx(3 / 4 * 2 * 2 * blocks, rel=0.05)
    assert moved(there, "all-gather") == pytest.approx(3 / 4 * (2 * 2 * blocks + 4 * outside), rel=0.05)
    assert there.looped["reduce-scatter", False] == pytest.approx(3 / 4 * 4 * blocks, rel=0.05)
    assert not any(share("data=8").looped.values())  # sums wait for the last block


def test_rows_must_divide():
    with pytest.raises(ConfigError, match=r"4 devices cannot share 6 rows\. Use a multiple of 4\."):
        share("data=4", rows=6)


@pytest.mark.parametrize(
    ("written", "groups"),
    [
        ("replica_groups=[2,2]<=[4], x", [[0, 1], [2, 3]]),
        ("replica_groups=[2,2]<=[2,2]T(1,0), x", [[0, 2], [1, 3]]),
        ("replica_groups={{0,1},{2,3}}, x", [[0, 1], [2, 3]]),
        ("source_target_pairs={{0,1},{1,0}}, x", [[0, 1], [1, 0]]),
        ("replica_groups=mesh['axis_0'=2,'axis_1'=2] {'axis_0'}, x", [[0, 2], [1, 3]]),
        ("replica_groups=mesh['a'=1,'b'=2,'c'=2], device_ids=([2,2]T(1,0)) {'b'}, x", [[0, 1], [2, 3]]),
        ("replica_groups=mesh['a'=2,'b'=2] {'a','b'}, x", [[0, 1, 2, 3]]),
    ],
)
def test_groups_as_xla_writes_them(written, groups):
    assert _groups(written).tolist() == groups


def test_what_is_written_otherwise_is_refused():
    with pytest.raises(ConfigError, match="not known here"):
        _groups("replica_groups=anything")


def test_a_ring_sends_what_it_must():
    assert [sent(kind, 8, 4) for kind in ("all-gather", "reduce-scatter", "all-reduce", "collective-permute")] == [
        6, 24, 12, 8,
    ]  # fmt: skip
