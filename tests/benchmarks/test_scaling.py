"""The arithmetic of `benchmarks/scaling.py`: times, efficiencies, and the rows that reach one."""

import math

import pytest

pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")

import scaling


def count(once=0.0, each=0.0, looped=0.0, held=0.0):
    """A device that computes for one second per micro-batch, and sends for these seconds."""
    h100 = scaling.H100
    moved = ((s * h100.within / 2, s * h100.between / 2) for s in (once, each, looped))
    return scaling.Count(held, scaling.COMPUTING * h100.peak, *moved)


def test_a_step_takes_what_its_micro_batches_and_its_one_update_take():
    taken = scaling.times(count(once=0.25, each=0.5, looped=0.4, held=12 * 3.35e12 / 28), 4, layers=4)
    assert (taken.computing, taken.updating, taken.once, taken.each) == pytest.approx((4, 1, 0.25, 2))
    assert taken.in_turn == pytest.approx(7.25)
    assert taken.overlapped == pytest.approx(7.25 - 4 * 0.4 * 3 / 4)


def test_no_more_hides_than_is_computed():
    taken = scaling.times(count(each=9, looped=8), 1, layers=2)
    assert taken.overlapped == pytest.approx(1 + 9 - 1)


@pytest.mark.parametrize("overlapped", [False, True])
def test_these_rows_reach_the_efficiency(overlapped):
    """A step of ten times the micro-batches takes the sums and the update once."""
    one = count(once=0.5, each=0.05, looped=0.04, held=1e12)
    rows = scaling.rows_for(0.9, scaling.times(one, 1, 4), 2, overlapped)
    steps = rows / 2
    taken = scaling.times(one, 1, 4)
    in_each = taken.each - (taken.hidden if overlapped else 0)
    assert steps * 1.0 / (steps * (1 + in_each) + taken.once + taken.updating) == pytest.approx(0.9)


def test_no_rows_reach_what_each_micro_batch_prevents():
    taken = scaling.times(count(once=0.5, each=0.2), 1, 4)
    assert math.isinf(scaling.rows_for(0.9, taken, 2, overlapped=False))


@pytest.mark.parametrize(
    ("rows", "most", "made"), [(32, 16, (2, 16)), (2, 16, (1, 2)), (6, 4, (2, 3)), (7, 4, (7, 1))]
)
def test_rows_are_split_into_as_few_micro_batches_as_can_be(rows, most, made):
    assert scaling.split(rows, most) == made


def test_efficiency_is_beside_what_one_device_computes():
    """Half the rows in half the time, and the sums and the update, which one device has too."""
    alone, shared = (scaling.asdict(count(once, held=12 * 3.35e12 / 28)) for once in (0, 0.5))
    model = {"model": "124M", "scaling": "strong"}
    first = model | {"devices": 1, "rows": 8, "micro_batches": 4, "count": alone}
    second = model | {"devices": 2, "rows": 4, "micro_batches": 2, "count": shared}
    found = scaling.with_times([first, second])
    assert [f["efficiency"]["in_turn"] for f in found] == pytest.approx([4 / 5, 2 / 3.5])
    assert [f["efficiency"]["overlapped"] for f in found] == pytest.approx([4 / 5, 2 / 3.5])


def test_labels_stay_apart_and_in_order():
    assert scaling.apart([90, 96, 94.5], 4) == [89.5, 97.5, 93.5]
    assert scaling.apart([50, 90], 4) == [50, 90]


def test_meshes_have_so_many_devices():
    assert [scaling.SIZES["7B"].mesh(n) for n in (1, 4, 64)] == ["data=1,fsdp=1", "data=1,fsdp=4", "data=8,fsdp=8"]
    assert scaling.SIZES["124M"].mesh(64) == "data=64,fsdp=1"
