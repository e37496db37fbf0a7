"""Texts in a field: of the objects in JSON lines, or of the rows of a parquet file."""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from byhand.errors import DataError, brief, install

LONGEST_LINE = 1 << 28  # bytes of a line of JSON
ROWS = 64  # that are in memory at once: a row may be a book
BUFFER = 1 << 20  # bytes of a column that are read at once
TEXTS = ("string", "large_string", "string_view")  # types of parquet


def of_lines(blocks: Iterable[bytes], field: str, name: str) -> Iterator[Iterable[bytes]]:
    """Yield the texts of JSON lines, whose UTF-8 comes in blocks."""
    for number, line in enumerate(lines(blocks, name), 1):
        if line.strip():
            yield [_of_object(line, field, f"{name}:{number}")]


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
                    f"{name}: the column {field[:40]!r} holds {kind}, no text. Name another --text-field."
                )
            for batch in table.iter_batches(columns=[field], batch_size=ROWS):
                for text in batch.column(field).to_pylist():
                    yield [_encoded(text, field, name)]
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"cannot read {name} as parquet: {brief(error, 200)}. Make it again.") from None


def lines(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of a text that comes in blocks."""
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


def _of_object(line: bytes, field: str, where: str) -> bytes:
    """Return the text of a line of JSON."""
    try:
        found = json.loads(line.decode())
    except RecursionError:
        raise DataError(f"{where} is no JSON: nested too deep. Mend the line, or remove it.") from None
    except ValueError as error:
        why = getattr(error, "msg", "") or brief(error)
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
    chats = " Use --chat for conversations." if {"messages", "conversations"} & set(names) else ""
    return (
        f"{where} has no field {field[:40]!r} but {known}. Name the one that holds the text with --text-field.{chats}"
    )
