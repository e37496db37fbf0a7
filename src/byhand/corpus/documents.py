"""Documents: the texts in a file, as blocks of UTF-8.

    text            one document in UTF-8, in UTF-16 or UTF-32 with a byte order mark, or in an encoding that is named
                    or detected (see `decoding`)
    .jsonl .ndjson  a document a line: a field of its object
    .json           JSON lines, an object with the field, or an array of objects or strings; anything else is one text
    parquet         a document a row: a column
    gzip, zstandard any of these, compressed

Compression and parquet are recognised by their first bytes, JSON by the file's name.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

from byhand.config_checks import AUTO, BYTES, require_encoding
from byhand.corpus.decoding import as_utf8, marked
from byhand.corpus.fields import lines, of_json, of_lines, of_rows
from byhand.errors import DataError, install, reason
from byhand.files.reading import open_regular

BLOCK = 1 << 20
GZIP, ZSTANDARD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # a frame that some programs write before zstandard's first
JSON_LINES = (".jsonl", ".ndjson")
JSON = ".json"
COMPRESSED = (".gz", ".zst")
FIELD = "text"
AS_JSON = "Write JSON in UTF-8."


@dataclass(frozen=True)
class Document:
    """A text as blocks of UTF-8, to be read once.

    file   the file that holds it
    named  the file was named, not found in a folder: it is an error if it cannot be read
    how    how the file was read, if that should be reported: the detected encoding
    """

    blocks: Iterable[bytes]
    file: str
    named: bool = True
    how: str = ""


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    text_field: str = ""
    """The field of JSON lines and parquet that holds the text; text if not given. If given, standard input is JSON
    lines too."""
    encoding: str = AUTO
    """Encoding of text files, such as cp1252 or gb18030; bytes takes a file as it is. auto: UTF-8, UTF-16 with its
    mark, or what is detected in a file that is neither."""
    exclude: Annotated[str | tuple[str, ...], "repeated"] = ""
    """Leave out files and folders whose name, or path within a folder of --data, matches this pattern, such as
    "*.log" or "drafts/*". May be repeated."""
    strict: Annotated[bool, "switch"] = False
    """Stop at a file or document that cannot be read; else those in folders and patterns are skipped and listed."""

    what: ClassVar[str] = "text"  # that documents hold

    def __post_init__(self) -> None:
        require_encoding(self.encoding)

    def documents(self, path: Path, named: bool = True) -> Iterator[Document]:
        """Yield the documents of a file, each to be read before the next.

        Reading them raises NoTextError if the file is not text, DataError if it cannot be read or lacks its library.
        """
        name, suffix = str(path), _suffix(path)
        with _reporting(name), _opened(path) as (file, kind):
            how, found = self._texts(file, name, kind if kind == "parquet" else suffix)
            for blocks in found:
                yield Document(_reported(blocks, name), name, named, how)

    def of_stream(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """Yield the documents of a stream: one, or those of JSON lines if a field is named."""
        with _reporting(name):
            how, found = self._texts(stream, name, JSON_LINES[0] if self.text_field else "")
            for blocks in found:
                yield Document(_reported(blocks, name), name, True, how)

    def has_fields(self, path: Path) -> bool:
        """Return whether a file is JSON or parquet, or cannot be read, which `documents` reports."""
        with suppress(DataError), _reporting(str(path)), _opened(path) as (_, kind):
            return kind == "parquet" or _suffix(path) in (*JSON_LINES, JSON)
        return True

    def plain(self, path: Path) -> bool:
        """Return whether a file is one document to be read as it is: in UTF-8, or with --encoding bytes.

        Reads the whole file. Raises as `documents` does.
        """
        name = str(path)
        with _reporting(name), _opened(path) as (file, kind):
            if kind != "plain" or _suffix(path) in JSON_LINES:
                return False
            if self.encoding == BYTES:
                return True
            if _suffix(path) == JSON or marked(file.read(4), self.encoding) != (b"", "utf-8"):
                return False
            file.seek(0)
            detected, blocks = as_utf8(_blocks(file), self.encoding, name)
            return not detected and all(True for _ in blocks)

    def _texts(self, file: Any, name: str, form: str) -> tuple[str, Iterable[Iterable[bytes]]]:
        """Return how a file is read, and its texts; `form` is "parquet", or the suffix of its name."""
        field, how = self.text_field or FIELD, ""
        if form == "parquet":
            return "", of_rows(file, field, name)
        if form in JSON_LINES:
            return "", of_lines(_json(file, name), field, name)
        if form == JSON and self.encoding != BYTES:
            with suppress(DataError):
                if found := of_json(_json(file, name), field, name):
                    return f"JSON (documents with {field[:40]!r})", found
            file.seek(0)
            how = f"plain text (no documents with {field[:40]!r})"
        detected, text = as_utf8(_blocks(file), self.encoding, name)
        return f"{detected} (detected; --encoding names another)" if detected else how, [text]


def refused(error: DataError) -> Iterator[bytes]:
    """Return blocks that raise this error when they are read."""
    raise error
    yield b""


def lines_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each line that is not blank, with its place as in a.jsonl:3, of a file that may be compressed."""
    name = str(path)
    with _reporting(name), _opened(path) as (file, kind):
        if kind == "parquet":
            raise DataError(f"{name} is a parquet file. Write its rows as JSON lines.")
        yield from lines_of_stream(file, name)


def lines_of_stream(file: Any, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield each line that is not blank, with its place, of a stream of JSON."""
    for number, line in enumerate(lines(_json(file, name), name), 1):
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
        elif first == ZSTANDARD or SKIPPABLE.match(first):
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


def _json(file: Any, name: str) -> Iterable[bytes]:
    """Return JSON as UTF-8; it must be UTF-8 or have a mark."""
    return as_utf8(_blocks(file), AUTO, name, AS_JSON)[1]


def _blocks(file: Any) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _reported(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    with _reporting(name):
        yield from blocks


@contextmanager
def _reporting(name: str) -> Iterator[None]:
    """Turn an error of a file into one line."""
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
    if error.strerror == "it is not a regular file":
        return f"{name} is not a regular file. Pipe it in, and name - in its place."
    return f"cannot read {name}: {reason(error)}. Check its permissions."
