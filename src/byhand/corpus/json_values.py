"""Values of JSON in a file, each with its place: one a line, or the elements of one array, as exports have it."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from byhand.errors import DataError, brief
from byhand.files.reading import parse_json

BLANK = " \t\r\n"


def values_of(lines: Iterable[tuple[str, bytes]], part: str) -> Iterator[tuple[str, Any]]:
    """Yield each value with its place as in a.json:3, of lines with theirs. DataError where they are no JSON.

    part  a key of objects that an array holds as parts of one value: such an array is a value itself
    """
    rest = iter(lines)
    if (first := next(rest, None)) is None:
        return
    if _is_array(first[1], part):
        elements = _elements(chain([first], rest))
        where, value = next(elements, ("", None))
        if _is_part(value, part):
            yield where, [value, *(other for _, other in elements)]
        elif where:
            yield from chain([(where, value)], elements)
        return
    for where, line in chain([first], rest):
        yield where, _parsed(line, where)


def _is_array(line: bytes, part: str) -> bool:
    """Return whether the first line begins an array of all values."""
    if not line.startswith(b"["):
        return False
    try:
        found = parse_json(line)
    except (ValueError, RecursionError):  # it goes on in other lines, or is very long
        return True
    return not all(_is_part(each, part) for each in found)


def _is_part(value: Any, part: str) -> bool:
    return isinstance(value, Mapping) and part in value


def _elements(lines: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, Any]]:
    """Yield the elements of the array that lines make together."""
    places, begins, parts, size = list[str](), list[int](), list[str](), 0
    for where, line in lines:
        places.append(where)
        begins.append(size)
        parts.append(line.decode() + "\n")
        size += len(parts[-1])
    text, at, decoder = "".join(parts), 1, json.JSONDecoder()
    while True:
        at = _behind(text, at, BLANK)
        where = places[bisect_right(begins, min(at, size - 1)) - 1]
        if text[at : at + 1] == "]" and _behind(text, at + 1, BLANK) == size:
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            wrong = places[bisect_right(begins, min(getattr(error, "pos", at), size - 1)) - 1]
            why = getattr(error, "msg", "") or brief(error)
            raise DataError(f"{wrong} is no JSON: {why}. Mend the array, or write a value a line.") from None
        yield where, _parsed(text[at:end], where)
        at = _behind(text, end, BLANK)
        if text[at : at + 1] not in (",", "]"):
            raise DataError(f"{places[-1]}: the array of JSON that begins the file does not end. Get it again.")
        at += text[at] == ","


def _behind(text: str, at: int, blank: str) -> int:
    """Return where the next character is that is not blank."""
    while at < len(text) and text[at] in blank:
        at += 1
    return at


def _parsed(content: str | bytes, where: str) -> Any:
    try:
        return parse_json(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is no JSON: {brief(error)}. Mend the line, or remove it.") from None
