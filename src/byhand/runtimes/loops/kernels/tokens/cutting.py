"""Finding the end of a word: the pre-tokenizers of `byhand.tokenizers.splitting`, on UTF-8.

A byte outside any valid character is a symbol by itself, neither letter nor number nor space.
"""

from __future__ import annotations

from byhand.runtimes.loops.machine.native import compiled

OTHER, LETTER, NUMBER, SPACE, NEWLINE = 0, 1, 2, 3, 4  # as in `byhand.tokenizers.unicode_kinds`


@compiled
def word_end(text, i, n, kinds, joins, digits):
    """Return (end, seen): the end of the word that begins at i, and the last position examined.

    kinds   of each code point
    joins   1: a symbol joins the letters after it, newlines join the symbols before them (GPT-4); 0: GPT-2
    digits  the most digits in a word; 0: no limit, and a space may precede them
    """
    first = text[i]
    if first == 39:  # '
        length = _contraction(text, i, n, joins)
        if length > 0:
            return i + length, i + 2
    kind, j = _character(text, i, n, kinds)
    if kind < SPACE or first == 32 or (joins == 1 and kind == SPACE):
        following, after = _character(text, j, n, kinds) if j < n else (NEWLINE, j)
        if kind == LETTER or (following == LETTER and kind != NUMBER and (joins == 1 or first == 32)):
            return _run(text, j, n, kinds, LETTER, 0)
        if kind == NUMBER or (following == NUMBER and first == 32 and digits == 0):
            return _run(text, j if kind == NUMBER else after, n, kinds, NUMBER, digits)
        if kind == OTHER or (following == OTHER and first == 32):
            end, seen = _run(text, j, n, kinds, OTHER, 0)
            if joins == 1:
                while end < n and (text[end] == 10 or text[end] == 13):
                    end += 1
                seen = end
            return end, seen
    return _spaces(text, i, n, kinds, joins, digits)


@compiled
def _spaces(text, i, n, kinds, joins, digits):
    """Return (end, seen) of a word of spaces: the last space belongs to the next word."""
    end, last, lines = i, i, i
    following = SPACE
    while end < n:
        following, after = _character(text, end, n, kinds)
        if following < SPACE:
            break
        last, end = end, after
        if following == NEWLINE:
            lines = after
    if joins == 1 and lines > i:
        return lines, end
    if end == n or last == i or (joins == 0 and digits == 1 and following == NUMBER):
        return end, end
    return last, end


@compiled
def _run(text, j, n, kinds, kind, most):
    """Return (end, seen) of a run of one kind whose second character is at j: up to `most`, 0: no limit."""
    count = 1
    while j < n and count != most:
        found, after = _character(text, j, n, kinds)
        if found != kind:
            break
        j = after
        count += 1
    return j, j


@compiled
def _contraction(text, i, n, joins):
    """Return the bytes of 's, 't, 're, 've, 'm, 'll, 'd at i, for GPT-4 also in capitals and with long s; or 0."""
    if i + 1 >= n:
        return 0
    a, b = text[i + 1], text[i + 2] if i + 2 < n else 0
    if joins == 1:
        if a == 0xC5 and b == 0xBF:
            return 3
        if 65 <= a <= 90:
            a += 32
        if 65 <= b <= 90:
            b += 32
    if a == 115 or a == 116 or a == 109 or a == 100:
        return 2
    if (a == 108 and b == 108) or ((a == 114 or a == 118) and b == 101):
        return 3
    return 0


@compiled
def _character(text, i, n, kinds):
    """Return the kind of the character at i, and where the next one begins."""
    a = int(text[i])
    if a < 0x80:
        return int(kinds[a]), i + 1
    if 0xC2 <= a < 0xE0 and i + 1 < n and text[i + 1] & 0xC0 == 0x80:
        return int(kinds[(a & 0x1F) << 6 | int(text[i + 1] & 0x3F)]), i + 2
    if 0xE0 <= a < 0xF0 and i + 2 < n and text[i + 1] & 0xC0 == 0x80 and text[i + 2] & 0xC0 == 0x80:
        point = (a & 0x0F) << 12 | int(text[i + 1] & 0x3F) << 6 | int(text[i + 2] & 0x3F)
        if point >= 0x800 and point >> 11 != 0x1B:
            return int(kinds[point]), i + 3
    if 0xF0 <= a < 0xF5 and i + 3 < n and text[i + 1] & 0xC0 == 0x80 and text[i + 2] & 0xC0 == 0x80:
        point = (a & 0x07) << 18 | int(text[i + 1] & 0x3F) << 12 | int(text[i + 2] & 0x3F) << 6
        if text[i + 3] & 0xC0 == 0x80 and 0x10000 <= point < 0x110000:
            return int(kinds[point | int(text[i + 3] & 0x3F)]), i + 4
    return OTHER, i + 1
