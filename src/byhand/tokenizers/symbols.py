"""Symbols: the tokens of a vocabulary, each byte written as one visible character, as in GPT-2's files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TypeGuard

from byhand.errors import DataError

LARGEST = 1 << 20  # id; no model has a larger vocabulary


def encoded(text: str) -> bytes:
    """Return the UTF-8 of a token; DataError if it is not valid Unicode."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError(f"the token {text[:80]!r} is not valid Unicode. Use another copy of the tokenizer.") from None


def ordinary(
    vocabulary: Mapping[str, int], merges: Iterable[Sequence[str]], special: Collection[str]
) -> dict[str, int]:
    """Return a vocabulary without special tokens, except bytes and those that merges also make or join."""
    kept = set(visible_bytes()).union(*((left, right, left + right) for left, right in merges))
    return {s: token for s, token in vocabulary.items() if s not in special or s in kept}


def is_vocabulary(values: object) -> TypeGuard[dict[str, int]]:
    """Return whether a JSON value is a table of symbols and ids."""
    return isinstance(values, dict) and all(type(i) is int and 0 <= i < LARGEST for i in values.values())


def is_pair(values: object) -> TypeGuard[tuple[str, str]]:
    """Return whether a JSON value is a pair of symbols."""
    return isinstance(values, (list, tuple)) and len(values) == 2 and all(isinstance(v, str) for v in values)


@cache
def visible_bytes() -> tuple[str, ...]:
    """Return each byte's character: itself if it is visible in Latin-1, else one from 256 on."""
    plain = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(256, 512))
    return tuple(chr(byte) if byte in plain else chr(next(others)) for byte in range(256))


@cache
def byte_symbols() -> dict[str, int]:
    """Return the byte of each visible character."""
    return {sign: byte for byte, sign in enumerate(visible_bytes())}
