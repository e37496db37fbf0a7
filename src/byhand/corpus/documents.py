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
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from byhand.config_checks import AUTO, BYTES, require_encoding
from byhand.corpus.fields import lines, of_lines, of_rows
from byhand.errors import DataError, install, reason
from byhand.files.reading import open_regular

BLOCK = 1 << 20
HEAD = 1 << 13  # bytes of a file in which a NUL says that it is no text
GZIP, ZSTANDARD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
PACKED = {b"BZh": "bzip2 -dc", b"\xfd7zX": "xz -dc", b"PK\3\4": "unzip -p"}  # not read: what unpacks them
JSON_LINES = (".jsonl", ".ndjson")
COMPRESSED = (".gz", ".zst")
MARKS = (  # UTF-32's first two bytes are UTF-16's mark
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
FIELD = "text"
NAME_IT = "Name its encoding, as in --encoding cp1252, or take its bytes as they are with --encoding bytes."
AS_BYTES = "Name a text, or take its bytes as they are with --encoding bytes."
AS_JSON = "Write JSON lines in UTF-8."


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

    what: ClassVar[str] = "text"  # that documents hold

    def __post_init__(self) -> None:
        require_encoding(self.encoding)

    def documents(self, path: Path, named: bool = True) -> Iterator[Document]:
        """Yield the documents of a file, each to be read before the next.

        Reading them raises NoTextError if the file is no text, DataError if it cannot be read or its library lacks.
        """
        name = str(path)
        with _reporting(name), _opened(path) as (file, kind):
            rows = kind == "parquet"
            field = self.text_field or FIELD
            found = of_rows(file, field, name) if rows else self._texts(file, name, _suffix(path))
            for blocks in found:
                yield Document(_reported(blocks, name), name, named)

    def of_stream(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """Yield the documents of a stream: one, or JSON lines if a field of them is named."""
        with _reporting(name):
            for blocks in self._texts(stream, name, JSON_LINES[0] if self.text_field else ""):
                yield Document(_reported(blocks, name), name)

    def has_fields(self, path: Path) -> bool:
        """Return whether a file is JSON lines or parquet; raises as `documents` does."""
        with _reporting(str(path)), _opened(path) as (_, kind):
            return kind == "parquet" or _suffix(path) in JSON_LINES

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
        if suffix not in JSON_LINES:
            return iter([self._text(_blocks(file), name)])
        text = Reading()._text(_blocks(file), name, AS_JSON)  # JSON is UTF-8, or has a mark
        return of_lines(text, self.text_field or FIELD, name)

    def _text(self, blocks: Iterable[bytes], name: str, advice: str = "") -> Iterator[bytes]:
        """Yield a text as UTF-8 without a byte order mark."""
        if self.encoding == BYTES:
            yield from blocks
            return
        blocks = iter(blocks)
        first = next(blocks, b"")
        if program := next((PACKED[begin] for begin in PACKED if first.startswith(begin)), None):
            raise NoTextError(
                f"{name} is compressed, and not by gzip or zstandard. Unpack it with {program}, or pipe that in as -."
            )
        mark, encoding = self._marked(first)
        if b"\0" in first[:HEAD] and not encoding.startswith(("utf-16", "utf-32")):
            raise _no_text(name, first.index(b"\0"), advice or AS_BYTES)
        yield from _decoded(chain([first[len(mark) :]], blocks), encoding, len(mark), name, advice)

    def _marked(self, first: bytes) -> tuple[bytes, str]:
        """Return the byte order mark that a text begins with, and its encoding."""
        mark, encoding = next(((m, e) for m, e in MARKS if first.startswith(m)), (b"", "utf-8"))
        return (mark, encoding) if self.encoding == AUTO else (b"", codecs.lookup(self.encoding).name)


def lines_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each line that is not blank, with its place as in a.jsonl:3, of a file that may be compressed."""
    name = str(path)
    with _reporting(name), _opened(path) as (file, kind):
        if kind == "parquet":
            raise DataError(f"{name} is a parquet file. Write its rows as JSON lines.")
        yield from lines_of_stream(file, name)


def lines_of_stream(file: Any, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield each line that is not blank, with its place, of a stream of JSON."""
    for number, line in enumerate(lines(Reading()._text(_blocks(file), name, AS_JSON), name), 1):
        if line := line.strip():
            yield f"{name}:{number}", line


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
        raise DataError(f"{path} is compressed by zstandard. Use {install('data')}.") from None
    return zstd.ZstdFile(raw)


def _decoded(blocks: Iterable[bytes], encoding: str, begin: int, name: str, advice: str) -> Iterator[bytes]:
    """Yield blocks of an encoding as UTF-8; DataError where they are not of it, NoTextError at a NUL character.

    begin   offset of the first byte in the file
    advice  what to do about it
    """
    decoder, at = codecs.getincrementaldecoder(encoding)(), begin
    for block in chain(blocks, [b""]):
        held = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeError as error:
            place = at - held + getattr(error, "start", 0)
            raise DataError(f"{name} is not {encoding.upper()} at byte {place:,}. {advice or NAME_IT}") from None
        if "\0" in text:
            raise _no_text(name, at, advice or AS_BYTES)
        at += len(block)
        if text:
            yield _utf8(text, name, at)


def _utf8(text: str, name: str, at: int) -> bytes:
    """Return the UTF-8 of a part of a text; some encodings, such as utf-7, can write half a character."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{name} holds half a character before byte {at:,}. Name another --encoding.") from None


def _no_text(name: str, at: int, advice: str) -> NoTextError:
    return NoTextError(f"{name} is no text: it holds a NUL character at byte {at:,} or behind it. {advice}")


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
        return f"{name} is no regular file. Pipe it in, and name - in its place."
    return f"cannot read {name}: {reason(error)}. Check its permissions."
