"""What pictures of attention's variants show is what the equations say."""

import math

import numpy as np
import pytest

from book.pictures.drawn import SVG, picture, texts
from byhand.book.pictures.canvas import BLUE, RUST
from pictures import variants


def arrows(colour):
    """The directions of all arrows of a colour, in the order in which they were drawn."""
    found = []
    for line in picture("rotary-turns").iter(f"{SVG}polyline"):
        if line.get("stroke") == colour:
            (ax, ay), (bx, by) = (map(float, point.split(",")) for point in line.get("points", "").split())
            found.append(math.atan2(ay - by, bx - ax))
    return found


def test_arrows_turn_by_their_position():
    expected = [t * angle for angle in (1, 1 / 2) for t in range(5)] + [*range(1, 5)]
    for found, angle in zip(arrows(BLUE), expected, strict=True):
        assert math.cos(found - angle) > 0.999
    for found, angle in zip(arrows(RUST), range(4), strict=True):
        assert math.cos(found - angle) > 0.999


def test_each_query_head_is_joined_to_the_head_that_it_reads():
    assert [variants.readers(k) for k in (4, 2, 1)] == [(0, 1, 2, 3), (0, 0, 1, 1), (0, 0, 0, 0)]
    svg = picture("grouped-queries")
    ends = [line.get("points", "").split()[1] for line in svg.iter(f"{SVG}polyline")]
    assert [len(set(ends[i : i + 4])) for i in (0, 4, 8)] == [4, 2, 1]
    assert texts("grouped-queries").count("K, V 0") == 3


@pytest.mark.parametrize(("window", "seen"), [(6, [1, 2, 3, 4, 5, 6]), (3, [1, 2, 3, 3, 3, 3])])
def test_masks_hide_what_a_window_hides(window, seen):
    weights = variants.masks()[window]
    np.testing.assert_array_equal((weights > 0).sum(axis=1), seen)
    coloured = sum(box.get("fill") != "none" for box in picture("attention-windows").iter(f"{SVG}rect"))
    assert coloured == sum(int((w > 0).sum()) for w in variants.masks().values())
