"""Laws of every number format: what packing may change, and what it may not; ml_dtypes and NumPy as witnesses."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.files import weights
from byhand.files.weights import OpenFile, Stored
from byhand.formats import format
from byhand.formats.names import SPELLED, Dtype, Exported, Multiplied, Weights
from byhand.formats.registry import FORMATS, Format, called

REAL = [kind for kind in FORMATS.values() if kind.unpack]
PACKED = [kind for kind in REAL if kind.pack]
each = pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
every = pytest.mark.parametrize("kind", REAL, ids=lambda kind: kind.name)
SPECIAL = [0.0, -0.0, 1e-45, -1e-39, 2.0**-133, 2.0**-25, 2.0**-24, 1.0, -1.0, 65504.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8]


def numbers(kind: Format):
    """Return a strategy of rows of whole blocks: numbers of every size that the format holds, and of one size."""
    most = min(kind.largest, float(np.finfo(np.float32).max))
    any_size = (
        st.floats(-most, most, width=32, allow_nan=False)
        if most > 1e30
        else st.floats(float(np.float32(-most)), float(np.float32(most)), width=32)
    )
    special = [x for x in SPECIAL if abs(x) <= most]
    number = st.sampled_from(special) | any_size | st.floats(-2, 2, width=32)
    return st.integers(1, 3).flatmap(
        lambda blocks: st.lists(number, min_size=blocks * kind.block, max_size=blocks * kind.block).map(
            lambda row: np.array(row, np.float32)
        )
    )


@each
@given(data=st.data())
def test_packing_moves_a_number_by_no_more_than_its_bound(kind, data):
    x = data.draw(numbers(kind))
    with np.errstate(all="ignore"):
        content = kind.packed(x)
        found = kind.floats(content)
    assert content.nbytes == kind.bytes(x.size) == x.size * kind.bits / 8
    assert (np.abs(found.astype(np.float64) - x) <= kind.bound(x)).all()
    assert np.array_equal(kind.rounded(x), found)


@each
def test_a_bound_is_no_larger_than_what_happens(kind):
    """Within a factor of two, on many numbers: a bound that is never met says nothing."""
    x = np.random.default_rng(0).uniform(-1, 1, (4096, kind.block)).astype(np.float32)
    moved = np.abs(kind.rounded(x).astype(np.float64) - x)
    assert (moved <= kind.bound(x)).all()
    assert (2 * moved >= kind.bound(x)).any()


@every
@given(data=st.data())
def test_what_is_unpacked_is_the_same_in_any_pieces(kind, data):
    blocks = data.draw(st.integers(1, 4))
    content = np.frombuffer(data.draw(st.binary(min_size=blocks * kind.size, max_size=blocks * kind.size)), np.uint8)
    whole = kind.floats(content)
    parts = [kind.floats(content[k * kind.size : (k + 1) * kind.size]) for k in range(blocks)]
    assert whole.dtype == np.float32
    assert np.array_equal(whole.view(np.uint32), np.concatenate(parts).view(np.uint32))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@given(row=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40))
def test_halves_are_those_of_another_library(name, row):
    """All of float32's bit patterns, NaNs included."""
    witness = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else np.float16)
    x = np.array(row, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        due, found = x.astype(witness), FORMATS[name].packed(x)
        said = FORMATS[name].floats(due.view(np.uint8))
    assert np.array_equal(FORMATS[name].floats(found), said, equal_nan=True)
    sound = ~np.isnan(x)
    assert np.array_equal(found.view("<u2")[sound], due.view("<u2")[sound])
    assert np.array_equal(said, due.astype(np.float32), equal_nan=True)


def test_ties_go_to_the_even_one_and_what_is_no_number_stays_so():
    """Next to 1, bfloat16 has steps of 2^-7; 1 + 2^-8 and 1 + 3 * 2^-8 lie midway between two."""
    rounded = FORMATS["bfloat16"].rounded
    near = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-8], np.float32)
    assert rounded(near).tolist() == [1.0, 1 + 2**-6, 1 + 2**-7, -1.0]
    out = rounded(np.array([np.nan, np.inf, -np.inf, -0.0, 3.4e38], np.float32))
    assert np.isnan(out[0])
    assert out[1:].tolist() == [np.inf, -np.inf, 0.0, np.inf]
    assert np.signbit(out[3])
    assert rounded(np.ones((2, 3), np.float32).T).shape == (3, 2)


def test_settings_name_formats_and_codes_name_one_each():
    assert {*get_args(Dtype), *get_args(Weights), *get_args(Multiplied)} <= FORMATS.keys()
    assert set(get_args(Exported)) | {"float64"} == {kind.name for kind in PACKED}
    assert set(SPELLED.values()) <= FORMATS.keys()
    for where in {where for kind in FORMATS.values() for where in kind.codes}:
        assert len(called(where)) == sum(where in kind.codes for kind in FORMATS.values())
    assert {kind.symbol for kind in called("gguf").values()} == {
        "F64", "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K",
    }  # fmt: skip
    with pytest.raises(ValueError, match="two formats"):
        format.register(FORMATS["float32"])


@pytest.mark.parametrize("count", [0, 1, 7, 8])
def test_words_hold_whole_numbers(count):
    assert FORMATS["bfloat16"].words(count) == -(-count // 2)
    assert [FORMATS["bfloat16"].word(number) for number in range(count)] == [number // 2 for number in range(count)]
    assert FORMATS["float32"].words(count) == count


@every
def test_a_file_is_read_in_pieces(kind, tmp_path, monkeypatch):
    """Beside the array, memory holds one piece; whatever its size, the numbers are the same."""
    monkeypatch.setattr(weights, "PIECE", 3 * kind.size * kind.block)
    content = np.tile(np.arange(kind.size * kind.block, dtype=np.uint8) % 60, 11)[: 10 * kind.size]
    (tmp_path / "file").write_bytes(b"head" + content.tobytes())
    asked: list[int] = []
    read = OpenFile.read
    monkeypatch.setattr(OpenFile, "read", lambda file, begin, size: asked.append(size) or read(file, begin, size))
    with OpenFile(tmp_path / "file") as file:
        found = file.floats(Stored(kind, (2, 5, kind.block), 4), "x")
    assert np.array_equal(found.reshape(-1), kind.floats(content))
    assert sum(asked) == 10 * kind.size
    assert max(asked) <= 3 * kind.size * kind.block
