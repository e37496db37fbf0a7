"""JSON values of a file, each with its place: one per line, or the elements of one array, as exports write them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from byhand.errors import DataError, brief
from byhand.files.reading import VALUES, parse_json

BLANK = " \t\r\n"
LONGEST_ELEMENT = 1 << 26  # characters of an array's element
AHEAD = 1 << 16  # characters of an array that are read at a time, at least


def values_of(lines: Iterable[tuple[str, bytes]], part: str) -> Iterator[tuple[str, Any]]:
    """Yield the value of each line with its place as in a.json:3; for a line that is not JSON, its DataError.

    Raises DataError if an array, or the first line, is not JSON: then the other lines are not values either.

    part  a key of objects that are parts of one value: an array of them is itself a value
    """
    rest = iter(lines)
    if (first := next(rest, None)) is None:
        return
    if _is_array(first[1], part):
        pieces = ((where, line + b"\n") for where, line in chain([first], rest))
        found = ((where, _parsed(written, where)) for where, written in elements(pieces))
        where, value = next(found, ("", None))
        if _is_part(value, part):
            yield where, [value, *(other for _, other in found)]
        elif where:
            yield from chain([(where, value)], found)
        return
    yield first[0], _parsed(first[1], first[0])
    for where, line in rest:
        try:
            value = _parsed(line, where)
        except DataError as error:
            value = error
        yield where, value


def _is_array(line: bytes, part: str) -> bool:
    """Return whether the first line begins an array of all values."""
    if not line.startswith(b"["):
        return False
    try:
        found = parse_json(line)
    except (ValueError, RecursionError):  # it continues on other lines, or is very long
        return True
    return not all(_is_part(each, part) for each in found)


def _is_part(value: Any, part: str) -> bool:
    return isinstance(value, Mapping) and part in value


def elements(pieces: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, str]]:
    """Yield each element of an array as JSON, with its place; memory holds little more than one of them.

    pieces  of the array's text, cut anywhere but within a character, each with its place
    """
    rest, decoder = iter(pieces), json.JSONDecoder()
    text, at, places, begins = "", 0, list[str](), list[int]()

    def read_on() -> bool:
        """Read at least as much as remains of the text; return whether there was more."""
        nonlocal text, at, places, begins
        known = max(0, bisect_right(begins, at) - 1)
        places, begins = places[known:], [begin - at for begin in begins[known:]]
        parts, size = [text[at:]], len(text) - at
        wanted = size + max(size, AHEAD)
        while size < wanted and (piece := next(rest, None)):
            places.append(piece[0])
            begins.append(size)
            parts.append(piece[1].decode())
            size += len(parts[-1])
        text, at = "".join(parts), 0
        return len(parts) > 1

    def place(index: int) -> str:
        return places[bisect_right(begins, min(index, len(text) - 1)) - 1]

    read_on()
    at = text.index("[") + 1
    while True:
        at, wrong = _behind(text, at), None
        if text[at : at + 1] == "]":
            break
        try:
            end = decoder.raw_decode(text, at)[1]
            behind = _behind(text, end)
        except (ValueError, RecursionError) as error:  # perhaps it continues
            end = behind = len(text)
            wrong = _not_json(place(getattr(error, "pos", at)), getattr(error, "msg", "") or brief(error))
        if behind < len(text):  # the element is complete
            if text[behind] not in ",]":
                raise _not_json(place(behind), "Expecting ',' delimiter")
            yield place(at), text[at:end]
            at = behind + (text[behind] == ",")
        elif len(text) - at > LONGEST_ELEMENT or text.count(",", at) > VALUES:
            raise DataError(f"{place(at)}: an element of the JSON array is too large to read. Split it.")
        elif not read_on():
            cut = f"{places[-1]}: the JSON array that begins the file does not end. Get the file again."
            raise wrong or DataError(cut)
    at += 1
    while not text[at:].strip(BLANK):
        at = len(text)
        if not read_on():
            return
    raise _not_json(place(_behind(text, at)), "Extra data")


def _not_json(where: str, why: str) -> DataError:
    return DataError(f"{where} is not valid JSON: {why}. Fix the array, or write one value per line.")


def _behind(text: str, at: int) -> int:
    """Return the index of the next character that is not blank."""
    while at < len(text) and text[at] in BLANK:
        at += 1
    return at


def _parsed(content: str | bytes, where: str) -> Any:
    try:
        return parse_json(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not valid JSON: {brief(error)}. Fix or delete the line.") from None
