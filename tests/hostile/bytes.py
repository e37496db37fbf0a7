"""Seeded damage to bytes: flips, cuts, splices, and pieces that are known to hurt."""

from __future__ import annotations

import random

PIECES = [
    b"",
    b"\0" * 16,
    b"\xff" * 8,
    b"[" * 5000,
    b'{"a":' * 5000,
    b'"' + b"\\" * 999,
    b"9" * 5000,
    b"-1",
    b"1e999",
    b"NaN",
    b"Infinity",
    b"null",
    b"true",
    b"1.5",
    b"10000000000",
    b"\xed\xa0\x80",
    b"\n",
    b'"__metadata__":{"a":"b"},',
    b"\xef\xbb\xbf",
    b"../../etc/passwd",
]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return content with one to four damages, seldom none."""
    for _ in range(chance.randint(1, 4)):
        content = chance.choice(_KINDS)(content, chance)
    return content


def _place(content: bytes, chance: random.Random) -> int:
    return chance.randrange(len(content) + 1)


def _flip(content: bytes, chance: random.Random) -> bytes:
    if not content:
        return content
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _remove(content: bytes, chance: random.Random) -> bytes:
    begin = _place(content, chance)
    return content[:begin] + content[begin + chance.randint(1, 40) :]


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = _place(content, chance)
    return content[:at] + chance.choice(PIECES) + content[at:]


def _overwrite(content: bytes, chance: random.Random) -> bytes:
    at, piece = _place(content, chance), chance.choice(PIECES)
    return content[:at] + piece + content[at + len(piece) :]


def _splice(content: bytes, chance: random.Random) -> bytes:
    begin, end, at = sorted(_place(content, chance) for _ in range(3))
    return content[:begin] + content[end:at] + content[begin:end] + content[at:]


def _number(content: bytes, chance: random.Random) -> bytes:
    """Put another number in the place of one that is written in digits."""
    digits = [i for i, byte in enumerate(content[:4000]) if 48 <= byte <= 57]
    if not digits:
        return content
    begin = end = chance.choice(digits)
    while end < len(content) and 48 <= content[end] <= 57:
        end += 1
    other = chance.choice(
        [b"0", b"-1", b"1", b"7", b"2.5", b"1e9", b"10000000000", b"9" * 5000, b"null", b'"1"', b"[1]"]
    )
    return content[:begin] + other + content[end:]


_KINDS = [_flip, _cut, _remove, _insert, _overwrite, _splice, _number, _number]
