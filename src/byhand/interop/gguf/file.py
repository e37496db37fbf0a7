"""A GGUF file, read within bounds and written: metadata by key, tensors by name with their bytes.

    "GGUF"  u32 version  u64 number of tensors  u64 number of keys
    each key:     string, u32 type, value             string: u64 length and UTF-8
    each tensor:  string, u32 axes, u64 each length (innermost first), u32 type, u64 offset
    padding to the alignment, then the tensors' bytes, each padded to it

Source      https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from byhand.errors import DataError
from byhand.files.weights import OpenFile, Stored
from byhand.formats.format import Format
from byhand.formats.ggml import format_of

MAGIC, VERSIONS, ALIGNMENT = b"GGUF", (2, 3), 32
ALIGN = "general.alignment"
MOST = 1 << 26  # bytes of metadata and descriptions; a vocabulary of 150,000 tokens takes 8 million
ITEMS = 1 << 21  # in a list: twice the largest vocabulary
KEYS = TENSORS = 1 << 16
AXES = 4
NUMBERS = {
    code: struct.Struct(f"<{letter}")
    for code, letter in zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIifBQqd", strict=True)
}
U32, I32, F32, BOOL, STRING, LIST, U64 = 4, 5, 6, 7, 8, 9, 10


class GGUF:
    """The metadata and tensors of a file; DataError if they exceed it."""

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self._place = 0
        self._begun, self._part = 0, b""  # read buffer: its offset in the file, its bytes
        if self._take(4) != MAGIC or self._number(U32) not in VERSIONS:
            raise file.damaged("it does not begin as a GGUF of version 2 or 3")
        n_tensors, n_keys = self._number(U64), self._number(U64)
        if n_tensors > TENSORS or n_keys > KEYS:
            raise file.damaged(f"it names {n_tensors:,} tensors and {n_keys:,} keys")
        self.keys: dict[str, Any] = {}
        for _ in range(n_keys):
            name = self._string()
            if name in self.keys:
                raise file.damaged(f"the key {name[:80]!r} occurs twice")
            self.keys[name] = self._value(self._number(U32))
        self.tensors: dict[str, Stored] = {}
        self.files: dict[str, OpenFile] = {}  # by tensor in another part
        self._describe(n_tensors)

    def read(self, name: str) -> np.ndarray:
        """Return a tensor in float32; all numbers must be finite."""
        return self.files.get(name, self.file).floats(self.tensors[name], name)

    def stored(self, name: str) -> bytes:
        """Return a tensor's bytes."""
        tensor = self.tensors[name]
        return self.files.get(name, self.file).read(tensor.begin, tensor.size).tobytes()

    def _describe(self, count: int) -> None:
        """Read the tensors' descriptions; their bytes must be contiguous up to the end of the file."""
        alignment = self.keys.get(ALIGN, ALIGNMENT)
        if type(alignment) is not int or not 8 <= alignment <= 1 << 16 or alignment & (alignment - 1):
            raise self.file.damaged(f"its alignment is {str(alignment)[:20]}")
        listed: list[tuple[str, Format, tuple[int, ...], int]] = []
        for _ in range(count):
            name, axes = self._string(), self._number(U32)
            if not 0 < axes <= AXES:
                raise self.file.damaged(f"{name[:80]!r} has {axes} axes")
            shape = tuple(self._number(U64) for _ in range(axes))[::-1]
            code, offset = self._number(U32), self._number(U64)
            try:
                kind = format_of(code)
            except DataError as error:
                raise DataError(f"{self.file.path}: {name[:80]!r} {error}") from None
            if not all(0 < n < 1 << 48 for n in shape) or shape[-1] % kind.block:
                raise self.file.damaged(f"{name[:80]!r} has the shape {shape} in {kind.symbol}")
            listed.append((name, kind, shape, offset))
        begin = end = _aligned(self._place, alignment)
        for name, kind, shape, offset in sorted(listed, key=lambda entry: entry[3]):
            if begin + offset != _aligned(end, alignment) or name in self.tensors:
                raise self.file.damaged(f"{name[:80]!r} does not follow the tensor before it")
            self.tensors[name] = Stored(kind, shape, begin + offset)
            end = begin + offset + self.tensors[name].size
        if not end <= self.file.size <= _aligned(end, alignment):
            raise self.file.damaged(f"it has {self.file.size:,} bytes, but its tensors end at {end:,}")

    def _value(self, kind: int) -> Any:
        """Return a value of the metadata: a number, a string, a list of strings, or an array of numbers."""
        if kind == STRING:
            return self._string()
        if kind in NUMBERS:
            return self._number(kind)
        if kind != LIST:
            raise self.file.damaged(f"a key has the type {kind}")
        item, count = self._number(U32), self._number(U64)
        if count > ITEMS:
            raise self.file.damaged(f"a list has {count:,} items")
        if item == STRING:
            return [self._string() for _ in range(count)]
        if item not in NUMBERS:
            raise self.file.damaged(f"a list has the type {item}")
        number = NUMBERS[item]
        found = array(number.format[-1], self._take(count * number.size))
        if sys.byteorder == "big":
            found.byteswap()
        return found

    def _number(self, kind: int) -> Any:
        (value,) = NUMBERS[kind].unpack(self._take(NUMBERS[kind].size))
        if kind == BOOL and value > 1:
            raise self.file.damaged("a boolean is neither 0 nor 1")
        return bool(value) if kind == BOOL else value

    def _string(self) -> str:
        content = self._take(self._number(U64))
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            raise self.file.damaged("a string is not UTF-8") from None

    def _take(self, size: int) -> bytes:
        """Return the next bytes; reads the file one megabyte at a time."""
        begin, end = self._place, self._place + size
        if end > MOST:
            raise self.file.damaged(f"its metadata have more than {MOST:,} bytes")
        if end > self.file.size:
            raise self.file.damaged(f"it ends at byte {self.file.size:,}, within its metadata")
        if end > self._begun + len(self._part):
            self._begun = begin
            self._part = self.file.read(begin, min(self.file.size - begin, max(size, 1 << 20))).tobytes()
        self._place = end
        return self._part[begin - self._begun : end - self._begun]


def content(
    keys: Mapping[str, Any], tensors: Mapping[str, Stored], data: Iterable[tuple[str, bytes]]
) -> Iterator[bytes]:
    """Yield the bytes of a file; `data` has each tensor's name and bytes in the same order."""
    yield MAGIC + struct.pack("<IQQ", VERSIONS[-1], len(tensors), len(keys))
    head = [b"".join([_text(key), _typed(value)]) for key, value in keys.items()]
    offset = 0
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]
        numbers = struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, tensor.kind.codes["gguf"], offset)
        head.append(_text(name) + numbers)
        offset = _aligned(offset + tensor.size)
    yield (whole := b"".join(head))
    yield bytes(-(len(whole) + 24) % ALIGNMENT)
    for (name, tensor), (given, packed) in zip(tensors.items(), data, strict=True):
        if (given, len(packed)) != (name, tensor.size):
            raise ValueError(f"{given} has {len(packed)} bytes, where {name} with {tensor.size} is due")
        yield packed
        yield bytes(-len(packed) % ALIGNMENT)


def _aligned(place: int, alignment: int = ALIGNMENT) -> int:
    """Round an offset up to a multiple of the alignment."""
    return -(-place // alignment) * alignment


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _typed(value: Any) -> bytes:
    """Return a value with its type: a boolean, u32, f32, a string, or a list of strings, of i32, or of f32."""
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _text(value)
    if isinstance(value, np.ndarray):
        return struct.pack("<IIQ", LIST, F32, len(value)) + value.astype("<f4").tobytes()
    if all(isinstance(item, str) for item in value):
        return struct.pack("<IIQ", LIST, STRING, len(value)) + b"".join(map(_text, value))
    return struct.pack("<IIQ", LIST, I32, len(value)) + np.asarray(value, "<i4").tobytes()
