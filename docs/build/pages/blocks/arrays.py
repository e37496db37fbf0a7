"""Arrays and their names as the pages print them: letters, matrices side by side, numbers in LaTeX."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from byhand.book.lessons import examples
from byhand.book.lessons.lesson import Array
from byhand.book.numbers.arithmetic import SHOWN, decimal
from byhand.book.numbers.closed_form import matrix
from byhand.book.practice.checking import tidy
from byhand.book.words.language import Words
from byhand.errors import ByhandError
from pages.blocks.markdown import bmatrix, display_lines, inline

SMALL = re.compile(r"([−-]?\d+(?:\.\d+)?)e[−-](\d+)")
NOISE = 10  # from 1e-10 on a number is printed as 0: it is rounding residue, which differs between machines
ROUGH = 1e-7  # of smaller numbers a matrix shows three digits, for the same reason
WIDE = 9  # columns that no telephone shows
ACROSS = 34  # letters of a formula on a telephone
LISTED = Words(", ", " 、 ")  # between formulas


def called(arrays: Iterable[Array], lang: str) -> str:
    """Return arrays' letters."""
    return LISTED.said(lang).join(inline(array.letter) for array in arrays)


def given_parts(letter: str, text: str) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield a given array, written as nested rows, in parts: its letter, it in LaTeX, its numbers in closed form."""
    nested = _nested(text)
    for part, data in _parts(letter, np.array(nested, dtype=object)):
        if not data.ndim:
            yield part, number_in_latex(float(nested)) if "e" in text else matrix(nested), data
        else:
            yield part, matrix(data.tolist()) if np.any(data != "0") else "0", data


def _parts(letter: str, data: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a wide array that holds queries, keys and values side by side as three; any other as it is."""
    together = re.search(r"_\{qkv\}|\\mathrm\{QKV\}", letter)
    if together is None or not data.ndim or data.shape[-1] < WIDE:
        yield letter, data
        return
    for own, part in zip("QKV", np.split(data, 3, axis=-1), strict=True):
        yield letter.replace(together[0], f"_{own}" if together[0].startswith("_") else own), part


def _nested(text: str) -> Any:
    """Return nested rows of numbers as lists of closed forms."""
    return ast.literal_eval(
        re.sub(r"[^\[\],]+", lambda part: repr(tidy(part[0].strip())) if part[0].strip() else "", text)
    )


def displayed(arrays: Iterable[Array]) -> str:
    """Return arrays as displayed matrices, side by side if a telephone has room for them."""
    parts = ([f"{letter} = {matrix_of(data)}" for letter, data in matrices(array)] for array in arrays)
    return display_lines([r" \quad ".join(row) for row in side_by_side(parts, ACROSS)])


def side_by_side(parts: Iterable[Sequence[str]], across: int) -> list[list[str]]:
    """Return formulas in rows of so many letters; the formulas of a part stay together."""
    rows: list[list[str]] = []
    room = 0
    for part in parts:
        widths = [_width(line) for line in part]
        room *= sum(widths) <= room  # b_Q, b_K and b_V stay together
        for line, width in zip(part, widths, strict=True):
            if rows and width <= room:
                rows[-1].append(line)
                room -= width
            else:
                rows.append([line])
                room = across - width
    return rows


def _width(line: str) -> int:
    """Return about how many letters wide a formula is."""
    return max(len(re.sub(r"\\\w+|[{}^&\s]", "", row)) + 3 * row.count("&") for row in line.split(r"\\"))


def matrices(array: Array) -> Iterator[tuple[str, np.ndarray]]:
    """Yield an array's matrices by their letters, one for each place along the axes before the last two."""
    data = np.asarray(array.data)
    if data.ndim < 3 or not np.any(data):
        yield from _parts(array.letter, data)
        return
    letter = rf"\left({array.letter}\right)" if "^" in array.letter else array.letter  # LaTeX takes one exponent
    for place in np.ndindex(*data.shape[:-2]):
        yield f"{letter}^{{({', '.join(map(str, place))})}}", data[place]


def matrix_of(data: np.ndarray) -> str:
    """Return an array of two axes at most as a matrix; one of zeros as 0."""
    if data.ndim == 0:
        return number_in_latex(float(data))
    if data.size > 1 and not np.any(data):
        return "0"
    return bmatrix(map(number_in_latex, row) for row in np.atleast_2d(data).tolist())


def value(lesson: str, element: str, digits: str = "3") -> str:
    """Return an element of a lesson's array, such as `attn.weights[2,1]`, as prose says it; ByhandError for none."""
    name, _, index = element.removesuffix("]").partition("[")
    found = [array.data for step in examples.make(lesson).steps for array in step.arrays if array.name == name]
    try:
        return decimal(float(np.asarray(found[-1])[tuple(int(i) for i in index.split(",") if i)]), int(digits))
    except (IndexError, ValueError):
        raise ByhandError(f"the lesson {lesson} has no number {element}.") from None


def number_as_text(x: float) -> str:
    """Return a number as it is printed outside a formula."""
    return quiet(decimal(x, 3 if abs(x) < ROUGH else SHOWN))


def number_in_latex(x: float) -> str:
    """Return a number as it is printed, powers of ten written out."""
    mantissa, _, power = number_as_text(x).partition("e")
    if power:
        mantissa = rf"{mantissa} \cdot 10^{{{power}}}" if mantissa != "1" else rf"10^{{{power}}}"
    return mantissa.replace("−", "-")


def rounded(text: str) -> str:
    """Return text whose longer decimals are rounded to two places, as on the first page."""

    def short(found: re.Match[str]) -> str:
        said = decimal(round(float(found[2]), 2))
        return said if said == "0" else f"{found[1]}{said}"

    return re.sub(r"([−-]?)\b(\d+\.\d{3,})", short, text)


def quiet(text: str) -> str:
    """Return arithmetic without the residue in which machines differ."""
    return re.sub(r"(?<!\w)\(0\)", "0", SMALL.sub(lambda small: "0" if int(small[2]) >= NOISE else small[0], text))
