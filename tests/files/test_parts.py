"""Arrays in parts: names and places back and forth, and what is no whole."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.files.parts import Assembly, place_of, placed_name, shape_of

SHAPES = {"wte": (12, 4), "blocks.0.mlp.b": (7,)}


@st.composite
def cut_arrays(draw):
    """A shape, and a grid that cuts it into boxes."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    axes = []
    for n in shape:
        inner = draw(st.lists(st.integers(1, n - 1), unique=True)) if n > 1 else []
        axes.append([slice(*pair) for pair in pairwise(sorted({0, n, *inner}))])
    return shape, draw(st.permutations([*product(*axes)]))


@given(cut_arrays())
def test_parts_in_any_order_are_the_array_again(cut):
    shape, boxes = cut
    shapes = {"a": shape, "b": (2,)}
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    assembly = Assembly(shapes, "float32")
    assembly.put("b", np.ones(2, np.float32))
    for i, box in enumerate(boxes):
        with pytest.raises(ValueError, match=r"^it lacks a part of a$"):
            assembly.require_whole()
        key = placed_name("a", box, shape)
        assert place_of(key, shapes) == ("a", box)
        assert (key == "a") == (len(boxes) == 1)
        assert array[box].shape == shape_of(box)
        assembly.put(key, array[box])
        with pytest.raises(ValueError, match=r"is there twice$"):
            assembly.put(placed_name("a", boxes[i // 2], shape), array[boxes[i // 2]])
    assembly.require_whole()
    np.testing.assert_array_equal(assembly.arrays["a"], array)
    assert assembly.arrays["a"].dtype == array.dtype


def test_parts_that_overlap_by_one_element_are_told():
    assembly = Assembly(SHAPES, "float64")
    assembly.put("wte[0:6,0:4]", np.zeros((6, 4)))
    with pytest.raises(ValueError, match=r"^'wte\[5:12,3:4\]' is there twice$"):
        assembly.put("wte[5:12,3:4]", np.zeros((7, 1)))
    with pytest.raises(ValueError, match=r"^'wte' is there twice$"):
        assembly.put("wte", np.zeros((12, 4)))


def test_a_missing_element_is_told():
    assembly = Assembly(SHAPES, "float32")
    assembly.put("blocks.0.mlp.b", np.zeros(7))
    assembly.put("wte[0:11,0:4]", np.zeros((11, 4)))
    assembly.put("wte[11:12,1:4]", np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"^it lacks a part of wte$"):
        assembly.require_whole()
    assembly.put("wte[11:12,0:1]", np.zeros((1, 1)))
    assembly.require_whole()


@pytest.mark.parametrize(
    "key",
    [
        "",
        "wpe",
        "wpe[0:1,0:1]",
        "wte[",
        "wte[0:1,0:1",
        "wte[]",
        "wte[:,:]",
        "wte[0:1,0:1] ",
        "wte[0:1,0:1]\n",
        "wte[0:1;0:1]",
        "wte[-1:1,0:4]",
        "wte[0:1,0:4][0:1,0:4]",
        "[0:1]",
        "wte[٠:١,0:4]",
        "wte[0:1.0,0:4]",
        "w" * 999,
        "wte[0:" + "9" * 5000 + ",0:4]",
        "wte[0:1000000000,0:4]",
        "\ud800",
        "wte\0",
        "m.wte",
    ],
)
def test_a_name_that_the_model_lacks_is_told_briefly(key):
    with pytest.raises(ValueError, match=r"^it has .*, which the model does not know$") as caught:
        place_of(key, SHAPES)
    assert len(str(caught.value)) < 150
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "key",
    [
        "wte[0:13,0:4]",
        "wte[0:0,0:4]",
        "wte[12:12,0:4]",
        "wte[5:4,0:4]",
        "wte[0:1]",
        "wte[0:1,0:1,0:1]",
        "wte[12:13,0:4]",
        "wte[999999998:999999999,0:4]",
        "blocks.0.mlp.b[0:7,0:1]",
        "wte[" + "0:1," * 3000 + "0:1]",
    ],
)
def test_a_place_that_the_array_lacks_is_told_briefly(key):
    with pytest.raises(ValueError, match=r"^'.* is not a part of an array of the shape \(") as caught:
        place_of(key, SHAPES)
    assert len(str(caught.value)) < 180
