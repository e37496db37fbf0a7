"""Texts in a field: of the objects in JSON lines or in an array, or of the rows of a parquet file.

Errors are raised only as a text is read, so that the next one can be read.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO

from byhand.corpus.json_values import elements
from byhand.errors import DataError, brief, install
from byhand.files.reading import require_few

LONGEST_LINE = 1 << 27  # bytes of a line of JSON
ROWS = 64  # in memory at once
DECODED = 1 << 29  # bytes of a column's values in memory at once, except a single larger one
UNPACKED, RATIO = 1 << 28, 1000  # a column may unpack to these bytes, or to this multiple of its packed size
WHOLE = 64  # blocks of a .json file that may be one object
BUFFER = 1 << 20  # bytes of a column read at once
TEXTS = ("string", "large_string", "string_view")  # parquet's text types


def of_lines(blocks: Iterable[bytes], field: str, name: str) -> Iterator[Iterable[bytes]]:
    """Yield the texts of JSON lines, given as blocks of UTF-8."""
    return (_once(_text_of, line, field, where) for where, line in _numbered(blocks, name))


def of_json(blocks: Iterable[bytes], field: str, name: str) -> Iterator[Iterable[bytes]] | None:
    """Return the texts of a .json file, or None if it is something else, such as settings.

    It may hold JSON lines, one object that has the field, or an array of objects or strings. DataError if it is not
    valid JSON from the beginning.
    """
    blocks = iter(blocks)
    begin = next(blocks, b"")
    kind = begin.lstrip()[:1]
    if kind == b"[":
        found = elements(_pieces(chain([begin], blocks), name))
        where, first = next(found, ("", "0"))
        if isinstance(_parsed(first, where), dict | str):
            return (_once(_text_of, value, field, at) for at, value in chain([(where, first)], found))
    elif kind == b"{":
        begin = b"".join([begin, *islice(blocks, WHOLE)])
        (where, first), *more = islice(_numbered([begin], name), 2)
        try:
            if field in _parsed(first, where) or more:
                return of_lines(chain([begin], blocks), field, name)
        except DataError:
            if field in _parsed(begin, name):
                return iter([_once(_text_of, begin, field, name)])
    return None


def of_rows(file: BinaryIO, field: str, name: str) -> Iterator[Iterable[bytes]]:
    """Yield the texts of a parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{name} is a parquet file. Use {install('data')}.") from None
    try:
        with pyarrow.parquet.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False) as table:
            schema = table.schema_arrow
            if field not in schema.names:
                raise DataError(_without_field(name, field, schema.names))
            if schema.names.count(field) > 1:
                raise DataError(f"{name} has two columns {field[:40]!r}. Name another --text-field.")
            kind = schema.field(field).type
            if str(getattr(kind, "value_type", kind)) not in TEXTS or pyarrow.types.is_nested(kind):
                raise DataError(
                    f"{name}: the column {field[:40]!r} holds {kind}, not text. Name another --text-field."
                )
            rows = _rows_at_once(table.metadata, field, name)
            for batch in table.iter_batches(rows, columns=[field], use_threads=False):
                for value in batch.column(field):  # one at a time: a dictionary's value may repeat in every row
                    yield _once(_text_in, value, field, name)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"cannot read {name} as parquet: {brief(error, 200)}. Make it again.") from None


def _rows_at_once(metadata: Any, field: str, name: str) -> int:
    """Return how many rows to decode at a time: each may hold the longest value of its column's largest piece."""
    largest = 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema == field:
                size, packed = column.total_uncompressed_size, column.total_compressed_size
                if size > UNPACKED and size > RATIO * packed:
                    raise DataError(f"{name}: its {packed:,} bytes unpack to {size:,}. Write smaller row groups.")
                largest = max(largest, size)
    return max(1, min(ROWS, DECODED // largest))


def lines(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of a text given in blocks."""
    held, size, number = list[bytes](), 0, 1
    for block in blocks:
        first, *others = block.split(b"\n")
        held.append(first)
        size += len(first)
        if size > LONGEST_LINE:
            raise DataError(f"{name}:{number} is longer than {LONGEST_LINE:,} bytes. Split it.")
        if others:
            yield b"".join(held)
            yield from others[:-1]
            held, size, number = [others[-1]], len(others[-1]), number + len(others)
    yield b"".join(held)


def _numbered(blocks: Iterable[bytes], name: str) -> Iterator[tuple[str, bytes]]:
    """Yield each line that is not blank, with its place."""
    return ((f"{name}:{number}", line) for number, line in enumerate(lines(blocks, name), 1) if line.strip())


def _pieces(blocks: Iterable[bytes], name: str) -> Iterator[tuple[str, bytes]]:
    """Yield lines, long ones in parts, with their places."""
    number = 1
    for block in blocks:
        for piece in block.splitlines(keepends=True):
            yield f"{name}:{number}", piece
            number += piece.endswith(b"\n")


def _once(make: Callable[..., bytes], *arguments: Any) -> Iterator[bytes]:
    yield make(*arguments)


def _text_of(written: bytes | str, field: str, where: str) -> bytes:
    """Return the text of an object or a string of JSON."""
    found = _parsed(written, where)
    if isinstance(found, str):
        return _encoded(found, field, where)
    if not isinstance(found, dict):
        raise DataError(f'{where} is not a JSON object. Write lines like {{"{field}": "…"}}.')
    if field not in found:
        raise DataError(_without_field(where, field, list(found)))
    if not isinstance(found[field], str | None):
        raise DataError(f"{where}: {field[:40]!r} is not a string. Name another field with --text-field.")
    return _encoded(found[field], field, where)


def _text_in(value: Any, field: str, name: str) -> bytes:
    """Return the text of a row."""
    try:
        return _encoded(value.as_py(), field, name)
    except UnicodeDecodeError:
        raise DataError(f"{name}: {field[:40]!r} holds bytes that are not UTF-8. Fix or delete the row.") from None


def _parsed(written: bytes | str, where: str) -> Any:
    try:
        content = written.encode() if isinstance(written, str) else written
        require_few(content)
        return json.loads(content.decode())
    except RecursionError:
        raise DataError(f"{where} is not valid JSON: nested too deep. Fix or delete the line.") from None
    except ValueError as error:
        why = getattr(error, "msg", "") or brief(error)
        raise DataError(f"{where} is not valid JSON: {why}. Fix or delete the line.") from None


def _encoded(text: str | None, field: str, where: str) -> bytes:
    """Return a document's UTF-8, empty for a missing value."""
    if text and "\0" in text:
        raise DataError(f"{where}: {field[:40]!r} contains a NUL character. Fix or delete it.")
    try:
        return (text or "").encode()
    except UnicodeEncodeError:
        raise DataError(f"{where}: {field[:40]!r} contains half a surrogate pair. Fix or delete it.") from None


def _without_field(where: str, field: str, names: list[str]) -> str:
    known = ", ".join(repr(name[:40]) for name in names[:8]) or "none"
    chats = " Use --chat for conversations." if {"messages", "conversations"} & set(names) else ""
    return (
        f"{where} has no field {field[:40]!r} but {known}. Name the one that holds the text with --text-field.{chats}"
    )
