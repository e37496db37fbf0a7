"""One token for each byte: id 0 to 255 is the byte itself, text is UTF-8."""

from __future__ import annotations

from collections.abc import Iterable

from byhand.errors import DataError


class ByteTokenizer:
    """Text as its UTF-8 bytes. Bytes of a command line that are no UTF-8 pass through unchanged."""

    def __contains__(self, token: int) -> bool:
        return 0 <= token < 256

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. DataError if it holds half of a surrogate pair, which has no bytes."""
        return list(utf8(text))

    def decode(self, tokens: Iterable[int]) -> bytes:
        """Return the bytes of ids. DataError if an id is no byte."""
        try:
            return bytes(tokens)
        except ValueError:
            raise DataError("the ids hold a token that is no byte. Byte tokens go from 0 to 255.") from None


def utf8(text: str) -> bytes:
    """Return the UTF-8 of a text; DataError if it holds half of a surrogate pair."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise DataError(f"character {error.start} of the text, {text[error.start]!r}, is no Unicode text.") from None
