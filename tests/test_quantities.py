"""Durations, counts and sizes as people read them."""

import pytest

from byhand.quantities import counted, duration, in_units


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0s"), (42, "42s"), (185, "3m 05s"), (7830, "2h 10m")])
def test_a_duration(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 B"), (999, "999 B"), (50112, "50.112 kB"), (1.986e9, "1.986 GB"), (3e15, "3000.000 TB")],
)
def test_a_size(number, said):
    assert in_units(number, "B") == said


def test_one_thing_is_singular():
    assert [counted(n, "head") for n in (0, 1, 2, 1000)] == ["0 heads", "1 head", "2 heads", "1,000 heads"]
