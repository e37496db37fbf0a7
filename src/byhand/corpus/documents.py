"""Documents: the texts in a file, as blocks of UTF-8.

    text            one document: UTF-8, or UTF-16 and UTF-32 with a byte order mark, or the encoding that is named
    .jsonl .ndjson  a document a line: a field of its object
    parquet         a document a row: a column
    gzip, zstandard any of these, compressed

Compression and parquet are known by their first bytes, JSON lines by the file's name.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import codecs
import gzip
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from byhand.config_checks import AUTO, BYTES, require_encoding
from byhand.errors import DataError, reason
from byhand.files.reading import open_regular

BLOCK = 1 << 20
HEAD = 1 << 13  # bytes of a file in which a NUL says that it is no text
LONGEST_LINE = 1 << 28  # bytes of a line of JSON
GZIP, ZSTANDARD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
JSON_LINES = (".jsonl", ".ndjson")
COMPRESSED = (".gz", ".zst")
MARKS = (  # UTF-32's first two bytes are UTF-16's mark
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
FIELD = "text"


class NoTextError(DataError):
    """A file holds something else than text."""


@dataclass(frozen=True)
class Document:
    """A text as blocks of UTF-8, to be read once.

    file   that holds it
    named  the file was named, not found in a folder: that it is no text is an error
    """

    blocks: Iterable[bytes]
    file: str
    named: bool = True


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    text_field: str = ""
    """The field of JSON lines and parquet that holds the text; text if not given. If given, standard input is JSON
    lines too."""
    encoding: str = AUTO
    """Encoding of text files, such as cp1252 or gb18030; bytes takes a file as it is. auto: UTF-8, or UTF-16 with its
    mark."""

    def __post_init__(self) -> None:
        require_encoding(self.encoding)

    def documents(self, path: Path, named: bool = True) -> Iterator[Document]:
        """Yield the documents of a file, each to be read before the next.

        Reading them raises NoTextError if the file is no text, DataError if it cannot be read or its library lacks.
        """
        name = str(path)
        with _reporting(name), _opened(path) as (file, kind):
            found = (
                _rows(path, self.text_field or FIELD) if kind == "parquet" else self._texts(file, name, _suffix(path))
            )
            for blocks in found:
                yield Document(_reported(blocks, name), name, named)

    def of_stream(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """Yield the documents of a stream: one, or JSON lines if a field of them is named."""
        for blocks in self._texts(stream, name, JSON_LINES[0] if self.text_field else ""):
            yield Document(_reported(blocks, name), name)

    def plain(self, path: Path) -> bool:
        """Return whether a file is one document whose bytes are UTF-8 already, or are asked for.

        Reads the whole file. Raises as `documents` does.
        """
        name = str(path)
        with _reporting(name), _opened(path) as (file, kind):
            if kind != "plain" or _suffix(path) in JSON_LINES:
                return False
            if self.encoding == BYTES:
                return True
            if self._marked(file.read(4)) != (b"", "utf-8"):
                return False
            file.seek(0)
            return all(True for _ in self._text(_blocks(file), name))

    def _texts(self, file: Any, name: str, suffix: str) -> Iterator[Iterable[bytes]]:
        return self._lines(file, name) if suffix in JSON_LINES else iter([self._text(_blocks(file), name)])

    def _text(self, blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
        """Yield a text as UTF-8 without a byte order mark."""
        if self.encoding == BYTES:
            yield from blocks
            return
        blocks = iter(blocks)
        first = next(blocks, b"")
        mark, encoding = self._marked(first)
        if b"\0" in first[:HEAD] and not encoding.startswith(("utf-16", "utf-32")):
            raise NoTextError(_no_text(name, first.index(b"\0")))
        yield from _decoded(chain([first[len(mark) :]], blocks), encoding, len(mark), name)

    def _marked(self, first: bytes) -> tuple[bytes, str]:
        """Return the byte order mark that a text begins with, and its encoding."""
        mark, encoding = next(((m, e) for m, e in MARKS if first.startswith(m)), (b"", "utf-8"))
        return (mark, encoding) if self.encoding == AUTO else (b"", codecs.lookup(self.encoding).name)

    def _lines(self, file: Any, name: str) -> Iterator[Iterable[bytes]]:
        """Yield the texts of JSON lines."""
        field, number = self.text_field or FIELD, 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise DataError(f"{name}:{number} is longer than {LONGEST_LINE:,} bytes. Split it.")
            if not line.isspace():
                yield [_of_object(line, field, f"{name}:{number}")]


def _suffix(path: Path) -> str:
    """Return the last suffix in lower case, without those of compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, str]]:
    """Open a file that may be compressed; also return its kind: "plain", "compressed" or "parquet"."""
    with os.fdopen(open_regular(path), "rb") as raw:
        first = raw.read(4)
        raw.seek(0)
        if first.startswith(GZIP):
            with gzip.GzipFile(fileobj=raw) as file:
                yield file, "compressed"
        elif first == ZSTANDARD:
            with _zstandard(raw, path) as file:
                yield file, "compressed"
        else:
            yield raw, "parquet" if first == PARQUET else "plain"


def _zstandard(raw: BinaryIO, path: Path) -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise DataError(f"{path} is compressed by zstandard. Use pip install 'byhand[data]'.") from None
    return zstd.ZstdFile(raw)


def _rows(path: Path, field: str) -> Iterator[Iterable[bytes]]:
    """Yield the texts of a parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{path} is a parquet file. Use pip install 'byhand[data]'.") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if field not in names:
                raise DataError(_without_field(str(path), field, names))
            kind = file.schema_arrow.field(field).type
            if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
                raise DataError(
                    f"{path}: the column {field[:40]!r} holds {kind}, no text. Name another --text-field."
                )
            for batch in file.iter_batches(columns=[field], batch_size=1024):
                for text in batch.column(0).to_pylist():
                    yield [_encoded(text, field, str(path))]
    except pyarrow.ArrowException as error:
        raise DataError(
            f"cannot read {path} as parquet: {str(error).splitlines()[0][:200]}. Make it again."
        ) from None


def _of_object(line: bytes, field: str, where: str) -> bytes:
    """Return the text of a line of JSON."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        why = getattr(error, "msg", None) or "nested too deep"
        raise DataError(f"{where} is no JSON: {why}. Mend the line, or remove it.") from None
    if not isinstance(found, dict):
        raise DataError(f'{where} is no object of JSON. Write lines like {{"{field}": "…"}}.')
    if field not in found:
        raise DataError(_without_field(where, field, list(found)))
    if not isinstance(found[field], str | None):
        raise DataError(f"{where}: {field[:40]!r} is no text. Name another field with --text-field.")
    return _encoded(found[field], field, where)


def _encoded(text: str | None, field: str, where: str) -> bytes:
    """Return a document's UTF-8; that of a value that is missing is empty."""
    if text and "\0" in text:
        raise DataError(f"{where}: {field[:40]!r} holds a NUL character, which no text has. Mend it, or remove it.")
    try:
        return (text or "").encode()
    except UnicodeEncodeError:
        raise DataError(f"{where}: {field[:40]!r} holds half a character. Mend it, or remove it.") from None


def _without_field(where: str, field: str, names: list[str]) -> str:
    known = ", ".join(repr(name[:40]) for name in names[:8]) or "none"
    return f"{where} has no field {field[:40]!r} but {known}. Name the one that holds the text with --text-field."


def _decoded(blocks: Iterable[bytes], encoding: str, begin: int, name: str) -> Iterator[bytes]:
    """Yield blocks of an encoding as UTF-8; DataError where they are not of it, NoTextError at a NUL character.

    begin  offset of the first byte in the file
    """
    decoder, at = codecs.getincrementaldecoder(encoding)(), begin
    for block in chain(blocks, [b""]):
        held = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeError as error:
            place = at - held + getattr(error, "start", 0)
            raise DataError(
                f"{name} is not {encoding.upper()} at byte {place:,}. Name its encoding, as in --encoding cp1252, or "
                f"take its bytes as they are with --encoding bytes."
            ) from None
        if "\0" in text:
            raise NoTextError(_no_text(name, at))
        at += len(block)
        if text:
            yield text.encode()


def _no_text(name: str, at: int) -> str:
    return (
        f"{name} is no text: it holds a NUL character at byte {at:,} or behind it. Name a text, or take its bytes as "
        f"they are with --encoding bytes."
    )


def _blocks(file: Any) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _reported(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    with _reporting(name):
        yield from blocks


@contextmanager
def _reporting(name: str) -> Iterator[None]:
    """Say what is wrong with a file in one line."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"cannot read {name}: its compressed data is damaged ({error}). Get it again.") from None
    except OSError as error:
        raise DataError(_refusal(name, error)) from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise DataError(f"cannot read {name}: its compressed data is damaged ({error}). Get it again.") from None


def _refusal(name: str, error: OSError) -> str:
    if error.strerror == "it is no regular file":
        return f"{name} is no regular file. Use --data - and pipe it in."
    return f"cannot read {name}: {reason(error)}. Check its permissions."
