"""Bytes to UTF-8: by byte order mark, by the named encoding, or by the detected one.

Detection applies to text that is neither UTF-8 nor marked, and needs the library chardet.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from byhand.config_checks import AUTO, BYTES
from byhand.errors import DataError, install

BINARY = 1 << 13  # first bytes of a file, in which a NUL means that it is not text
HEAD = 16  # blocks of a text that must reveal its encoding
SAMPLE = 200_000  # bytes from which the encoding is detected
PACKED = {b"BZh": "bzip2 -dc", b"\xfd7zX": "xz -dc", b"PK\3\4": "unzip -p"}  # not supported: what unpacks them
MARKS = (  # UTF-32's first two bytes are UTF-16's mark
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
WIDER = {"iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}
NAME_IT = "Name its encoding, as in --encoding cp1252, or take its bytes as they are with --encoding bytes."
AS_BYTES = "Name a text, or take its bytes as they are with --encoding bytes."


class NoTextError(DataError):
    """A file holds something other than text."""


def as_utf8(blocks: Iterable[bytes], encoding: str, name: str, advice: str = "") -> tuple[str, Iterable[bytes]]:
    """Return the encoding that was detected, if any, and the text as UTF-8 without a byte order mark.

    encoding  its name, or auto, or bytes, which keeps the bytes as they are
    advice    what to do if a text that must be UTF-8 is not; turns detection off

    Reading the text raises DataError at bytes that are not valid in its encoding, NoTextError if it is not text.
    """
    if encoding == BYTES:
        return "", blocks
    blocks = iter(blocks)
    head = [next(blocks, b"")]
    first = head[0]
    if program := next((PACKED[begin] for begin in PACKED if first.startswith(begin)), None):
        raise NoTextError(
            f"{name} is compressed, and not by gzip or zstandard. Unpack it with {program}, or pipe that in as -."
        )
    mark, found = marked(first, encoding)
    detected = ""
    if encoding == AUTO and not (mark or advice):
        head += islice(blocks, HEAD - 1)
        detected = _detected(b"".join(head), len(head) < HEAD)
    found = detected or found
    if b"\0" in first[:BINARY] and not found.startswith(("utf-16", "utf-32")):
        raise _no_text(name, first.index(b"\0"), advice or AS_BYTES)
    head[0] = first[len(mark) :]
    if not advice:
        hint = "" if encoding != AUTO or _detect() else f" {install('data')} lets byhand detect it."
        advice = NAME_IT + hint
    return detected, _decoded(chain(head, blocks), found, len(mark), name, advice)


def marked(first: bytes, encoding: str) -> tuple[bytes, str]:
    """Return the byte order mark that a text begins with, and its encoding."""
    mark, found = next(((m, e) for m, e in MARKS if first.startswith(m)), (b"", "utf-8"))
    return (mark, found) if encoding == AUTO else (b"", codecs.lookup(encoding).name)


def _detected(head: bytes, whole: bool) -> str:
    """Return the encoding of a text from its head, or from all of it; "" if it is UTF-8 or cannot be detected."""
    bad = head.find(b"\0", 0, BINARY)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, whole)
    except UnicodeDecodeError as error:
        bad = error.start
    if bad < 0 or (detect := _detect()) is None:
        return ""
    shown = head.decode(errors="replace")
    wrong = shown.count("\ufffd")
    if len(shown) - len(shown.encode("ascii", "ignore")) > 2 * wrong > 0:
        return ""  # damaged UTF-8
    begin = head.rfind(b"\n", 0, bad) + 1 if bad > SAMPLE // 2 else 0
    found = detect(head[begin : begin + SAMPLE])["encoding"]
    try:
        name = codecs.lookup(found or "").name
        name = WIDER.get(name, name)
        codecs.getincrementaldecoder(name)().decode(head, whole)
    except (LookupError, UnicodeError):
        return ""
    wide = name.startswith(("utf-16", "utf-32"))
    return name if name != "utf-8" and wide >= (b"\0" in head[:BINARY]) else ""


def _detect() -> Callable[[bytes], Mapping[str, Any]] | None:
    try:
        from chardet import detect
    except ImportError:
        return None
    return detect


def _decoded(blocks: Iterable[bytes], encoding: str, begin: int, name: str, advice: str) -> Iterator[bytes]:
    """Yield blocks of an encoding as UTF-8; DataError at bytes not valid in it, NoTextError at a NUL character.

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
            raise DataError(f"{name} is not {encoding.upper()} at byte {place:,}. {advice}") from None
        if "\0" in text:
            raise _no_text(name, at, AS_BYTES)
        at += len(block)
        if text:
            yield _utf8(text, name, at)


def _utf8(text: str, name: str, at: int) -> bytes:
    """Return the UTF-8 of a part of a text; some encodings, such as utf-7, can write lone surrogates."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{name} has half a surrogate pair before byte {at:,}. Name another --encoding.") from None


def _no_text(name: str, at: int, advice: str) -> NoTextError:
    return NoTextError(f"{name} is not text: it has a NUL at byte {at:,} or later. {advice}")
