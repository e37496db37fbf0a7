"""Arrays and their names as the pages print them: letters, matrices side by side, numbers in LaTeX."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import numpy as np

from byhand.book.lessons import examples
from byhand.book.lessons.lesson import Array
from byhand.book.numbers.arithmetic import decimal
from byhand.book.numbers.closed_form import matrix
from byhand.book.pages.blocks.markdown import bmatrix, display_lines, inline
from byhand.book.pages.blocks.shapes import LATEX
from byhand.book.practice.checking import tidy
from byhand.errors import ByhandError

PARTIAL = r"\partial "
SETTINGS = {
    "text": r"\mathrm{text}",
    "tokens": r"\mathrm{token}",
    "targets": "y",
    "rate": r"\text{rate}",
    "lr": r"\alpha",
    "beta1": r"\beta_1",
    "beta2": r"\beta_2",
    "eps": r"\epsilon_{\mathrm{AdamW}}",
    "weight_decay": r"\lambda",
    "eps of LN": r"\epsilon_{LN}",
}
SMALL = re.compile(r"([−-]?\d+(?:\.\d+)?)e[−-](\d+)")
NOISE = 10  # from 1e-10 on a number is printed as 0: it is rounding residue, which differs between machines
ROUGH = 8  # from 1e-8 on three digits are printed, for the same reason
ACROSS = 34  # letters of a formula on a telephone


def letter_of(name: str, otherwise: str = "") -> str:
    """Return a name as a letter, such as W_Q; `otherwise`, or the name as words, for one that is none."""
    mark, bare = (PARTIAL, name[1:]) if name.startswith("∂") else ("", name)
    bare = bare.removeprefix("after.")
    known = LATEX.get(bare) or SETTINGS.get(bare)
    letter = re.fullmatch(r"([A-Za-z])(?:_(\w+))?(\'*)", bare)
    if letter and not known:
        known = letter[1] + (f"_{{{letter[2]}}}" if letter[2] else "") + letter[3]
    return mark + known if known else otherwise or rf"\text{{{name}}}"


def called(array: Array) -> str:
    """Return an array's letter, and its name if that differs."""
    same = not array.name or letter_of(array.name) == array.letter
    return inline(array.letter) + ("" if same else f" = `{array.name}`")


def exact(text: str) -> str:
    """Return nested rows of numbers in LaTeX."""
    nested = ast.literal_eval(
        re.sub(r"[^\[\],]+", lambda part: repr(tidy(part[0].strip())) if part[0].strip() else "", text)
    )
    if "e" in text and not isinstance(nested, list):
        return number_in_latex(float(nested))
    return matrix(nested)


def escaped(name: str) -> str:
    """Return a name as LaTeX takes it."""
    return name.replace("_", r"\_")


def displayed(arrays: Iterable[Array]) -> str:
    """Return arrays as displayed matrices, side by side if a telephone has room for them."""
    rows: list[list[str]] = []
    room = 0
    for line in (line for array in arrays for line in matrices(array)):
        width = max(len(re.sub(r"\\\w+|[{}^&\s]", "", row)) + 3 * row.count("&") for row in line.split(r"\\"))
        if rows and width <= room:
            rows[-1].append(line)
            room -= width
        else:
            rows.append([line])
            room = ACROSS - width
    return display_lines([r" \quad ".join(row) for row in rows])


def matrices(array: Array) -> Iterator[str]:
    """Yield an array as matrices, one for each place along the axes before the last two."""
    data = np.asarray(array.data)
    if data.ndim < 3 or not np.any(data):
        yield f"{array.letter} = {matrix_of(data)}"
        return
    for place in np.ndindex(*data.shape[:-2]):
        yield f"{array.letter}^{{({', '.join(map(str, place))})}} = {matrix_of(data[place])}"


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
        return decimal(float(np.asarray(found[-1])[tuple(map(int, index.split(",")))]), int(digits))
    except (IndexError, ValueError):
        raise ByhandError(f"the lesson {lesson} has no number {element}.") from None


def number_in_latex(x: float) -> str:
    """Return a number as it is printed, powers of ten written out."""
    text = quiet(decimal(x))
    mantissa, _, power = text.partition("e")
    if power:
        mantissa = rf"{mantissa} \cdot 10^{{{power}}}" if mantissa != "1" else rf"10^{{{power}}}"
    return mantissa.replace("−", "-")


def quiet(text: str) -> str:
    """Return arithmetic without the digits in which machines differ."""

    def shorter(small: re.Match[str]) -> str:
        mantissa, power = small[1].replace("−", "-"), int(small[2])
        if power >= NOISE:
            return "0"
        return f"{float(mantissa):.3g}e−{small[2]}".replace("-", "−") if power >= ROUGH else small[0]

    return re.sub(r"(?<!\w)\(0\)", "0", SMALL.sub(shorter, text))
