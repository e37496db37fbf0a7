"""Files of arrays: the same bytes as the library's writer, block by block, read again piece by piece."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from byhand.files.tensor_file import blocks, tensors

SHAPES = st.dictionaries(
    st.text("abc.éß0", min_size=1, max_size=6), st.lists(st.integers(0, 4), max_size=3), max_size=5
)


@given(SHAPES, st.sampled_from(["float32", "float64"]), st.integers(0, 99))
def test_a_file_is_the_one_that_the_library_writes(shapes, dtype, seed):
    rng = np.random.default_rng(seed)
    arrays = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    transposed = {name: array.copy("F") for name, array in arrays.items()}
    written = b"".join(blocks(transposed))
    assert written == save(arrays)
    content = np.frombuffer(written, np.uint8)
    due = {name: array.shape for name, array in arrays.items()}
    found = tensors(lambda begin, size: content[begin : begin + size].copy(), len(content), due, dtype)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_blocks_of_large_arrays_are_their_own_memory_and_small_ones_share_one():
    large, small = np.ones((512, 1024), np.float32), np.zeros(3, np.float32)
    before, block, after = blocks({"a": small, "b": large, "c": small, "d": small})
    assert (len(before) - len(after)) > 0
    assert len(after) == 24
    large[0, 0] = 2
    assert np.frombuffer(block, np.float32)[0] == 2


def test_a_file_that_is_no_file_of_these_arrays_is_refused_before_they_are_read():
    content = np.frombuffer(b"".join(blocks({"wte": np.ones((2, 3), np.float32)})), np.uint8)
    asked = []

    def read(begin, size):
        asked.append((begin, size))
        return content[begin : begin + size].copy()

    with pytest.raises(ValueError, match="wte has shape"):
        tensors(read, len(content), {"wte": (3, 2)}, "float32")
    assert len(asked) == 2  # the length of the header, and the header
