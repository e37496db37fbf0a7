"""Durations and counts as people read them."""

import pytest

from byhand.quantities import counted, duration


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0s"), (42, "42s"), (185, "3m 05s"), (7830, "2h 10m")])
def test_a_duration(seconds, said):
    assert duration(seconds) == said


def test_one_thing_is_singular():
    assert [counted(n, "head") for n in (0, 1, 2, 1000)] == ["0 heads", "1 head", "2 heads", "1000 heads"]
