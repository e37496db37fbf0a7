"""Checkpoints of nanoGPT: what is refused before torch sees it, and a clear line where torch is not installed."""

import importlib.util
import pickle
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import DataError
from byhand.interop import exchange
from byhand.interop.nanogpt.nesting import levels

TORCH = importlib.util.find_spec("torch") is not None


def archive(path, files, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


CALLED = [
    (b"cbuiltins\nbytearray\n", "builtins bytearray"),
    (b"ccollections\nCounter\n", "collections Counter"),
    (b"ctorch\nSize\n", "torch Size"),
    (b"c_codecs\nencode\n", "_codecs encode"),
    (b"(ibuiltins\nset\n", "builtins set"),
    (b"\x8c\x08builtins\x8c\x04eval\x93", "STACK_GLOBAL"),
]


@pytest.mark.parametrize(("opcodes", "named"), CALLED, ids=[named for _, named in CALLED])
def test_a_pickle_that_calls_anything_but_what_makes_tensors_is_refused(opcodes, named, tmp_path):
    """torch would call some of them with sizes from the file: `bytearray(8 << 30)`."""
    path = archive(tmp_path / "ckpt.pt", {"archive/data.pkl": b"\x80\x02" + opcodes + b"."})
    assert f"holds '{named}' besides tensors and plain values" in refused(path)


def refused(path):
    with pytest.raises(DataError) as error:
        exchange.read(path)
    assert str(error.value).isprintable()
    return str(error.value)


def doubled(levels):
    """Return tuples of which each holds the one before twice; its hash takes 2^levels steps."""
    found = ()
    for _ in range(levels - 1):
        found = found, found
    return found


VALUES = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=3)
        | inner.map(lambda value: (value, [value], value))
    ),
)


def depth(value):
    """Return how many tuples lie in each other; a list or a table in between begins again."""
    inside = value if isinstance(value, tuple) else ()
    return (1 if isinstance(value, tuple) else 0) + max(map(depth, inside), default=0)


def parts(value):
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from parts(part)


@given(VALUES, st.integers(0, 5))
def test_levels_of_tuples_are_found_without_loading(value, protocol):
    assert levels(pickle.dumps(value, protocol)) == max(map(depth, parts(value)))


def test_levels_take_steps_by_the_size_of_the_file():
    assert levels(pickle.dumps([doubled(500)])) == 500


@given(st.binary(max_size=40))
def test_what_is_no_pickle_is_a_value_error(content):
    with suppress(ValueError):
        levels(b"\x80\x02" + content + b".")


@pytest.mark.parametrize(
    ("files", "method"),
    [
        ({"archive/version": b"3"}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"", "other/data.pkl": b""}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"\0" * 100_000}, zipfile.ZIP_DEFLATED),
        ({"archive/data.pkl": pickle.dumps([bytes(1 << 22)])}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": pickle.dumps({doubled(17): 1})}, zipfile.ZIP_STORED),
    ],
)
def test_a_zip_that_torch_would_not_write_is_refused(files, method, tmp_path):
    assert "is no whole checkpoint of torch" in refused(archive(tmp_path / "ckpt.pt", files, method))


def test_a_zip_that_is_cut_is_refused(tmp_path):
    path = archive(tmp_path / "ckpt.pt", {"archive/data.pkl": b"\x80\x02}."})
    path.write_bytes(path.read_bytes()[:-10])
    assert "is no whole checkpoint of torch" in refused(path)


@pytest.mark.skipif(TORCH, reason="torch is installed")
def test_without_torch_one_line_says_so(tmp_path):
    assert "is a checkpoint of torch, which is not installed" in refused(
        archive(tmp_path / "ckpt.pt", {"archive/data.pkl": b"\x80\x02}."})
    )
