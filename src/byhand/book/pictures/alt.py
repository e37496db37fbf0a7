"""What a picture shows, in one sentence with its numbers, for readers who cannot see it."""

from __future__ import annotations

from collections.abc import Iterable

from byhand.book.numbers.arithmetic import decimal
from byhand.book.words.language import COLON, COMMA, SEMICOLON, Said, Words, say

STOP = Words(".", "。")


def sentence(lang: str, start: Words, parts: Iterable[str]) -> str:
    """Return what the picture is about, then its parts, up to a full stop."""
    return start.said(lang) + SEMICOLON.said(lang).join(parts) + STOP.said(lang)


def row(lang: str, name: Said, values: Iterable[float], digits: int = 3) -> str:
    """Return a name and its numbers; a colon within the name becomes a comma."""
    said = say(name, lang).replace("：", "，").replace(": ", ", ")
    return said + COLON.said(lang) + COMMA.said(lang).join(decimal(float(x), digits) for x in values)
