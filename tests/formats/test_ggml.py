"""Types of GGUF that a library unpacks: read where it is installed, asked for by name where it is not."""

import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from byhand.errors import DataError
from byhand.files.weights import Stored
from byhand.formats.ggml import BY_LIBRARY, UNREADABLE, format_of
from byhand.formats.registry import called
from byhand.interop import exchange
from byhand.interop.gguf.file import content


@pytest.fixture(autouse=True)
def _forgotten():
    format_of.cache_clear()
    yield
    format_of.cache_clear()


def written(path, code, shape, data: bytes):
    """Write a file of one tensor, described as being of a type whatever that is."""
    name = b"token_embd.weight"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(name)) + name
    head += struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], code, 0)
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


def refused(path) -> str:
    with pytest.raises(DataError) as error:
        exchange.read(path)
    return str(error.value)


def test_a_number_names_one_type():
    assert not (
        BY_LIBRARY.keys() & UNREADABLE.keys() | (BY_LIBRARY.keys() | UNREADABLE.keys()) & called("gguf").keys()
    )
    assert all(format_of(code) is kind for code, kind in called("gguf").items())


def test_the_library_is_asked_for_by_the_name_of_the_type(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    said = refused(written(tmp_path / "f", 6, (2, 32), bytes(44)))
    assert "'token_embd.weight' is Q5_0, which the library gguf unpacks." in said
    assert said.endswith('Use pip install "byhand[gguf]".')
    assert "is Q8_K, which cannot be read here. Use a file in" in refused(written(tmp_path / "f", 15, (2, 32), b""))
    assert "is the unknown type 4294967295," in refused(written(tmp_path / "f", 2**32 - 1, (2, 32), b""))


def doubling(asked):
    """Return a library with one type: two numbers in a block of three bytes, of which the first is ignored."""

    def dequantize(blocks, kind):
        asked.append(blocks.shape)
        if kind != 6:
            raise NotImplementedError
        return blocks.astype(np.float32).reshape(len(blocks), -1, 3)[:, :, 1:].reshape(len(blocks), -1)

    def known(code):
        if code > 7:
            raise ValueError(code)
        return code

    return SimpleNamespace(GGMLQuantizationType=known, GGML_QUANT_SIZES={6: (2, 3), 7: (2, 3)}, dequantize=dequantize)


def test_sizes_are_the_librarys_and_are_checked_before_it_unpacks_anything(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setitem(sys.modules, "gguf", doubling(asked))
    kind = format_of(6)
    assert (kind.symbol, kind.block, kind.size, kind.bits) == ("Q5_0", 2, 3, 12)
    assert kind.floats(np.arange(6, dtype=np.uint8)).tolist() == [1, 2, 4, 5]
    assert asked[-1] == (1, 6)  # a row of many blocks: it is slow with many rows
    assert b"".join(content({}, {"x": Stored(kind, (1, 2), 0)}, [("x", b"abc")]))
    asked.clear()
    assert "has the shape (2, 3) in Q5_0" in refused(written(tmp_path / "f", 6, (2, 3), bytes(9)))
    assert "its tensors end at" in refused(written(tmp_path / "f", 6, (1 << 20, 1 << 20), bytes(64)))
    assert not asked


@pytest.mark.parametrize("code", [7, 10])
def test_a_library_that_lacks_a_type_should_be_a_newer_one(code, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", doubling([]))
    said = refused(written(tmp_path / "f", code, (2, 32), bytes(48)))
    assert said.endswith('Use pip install "byhand[gguf]" --upgrade.')
