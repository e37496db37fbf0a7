"""Formats of values in templates: digits, lists, matrices, vectors, shapes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from byhand.book.numbers import arithmetic, closed_form
from byhand.book.words.language import COMMA, Words, say
from byhand.book.words.plain_math import translated
from pages.blocks import arrays, markdown, step_rows

ACROSS = 90  # letters of matrices on one line, with the names of their brackets
LONG = 250  # LaTeX longer than this is harder to read than the numbers it stands for


def _each(form: Callable[[Any], str], value: Any) -> Any:
    """Return a value, or every element of nested sequences, in this form."""
    if isinstance(value, str | bytes | int | float | Words) or np.ndim(value) == 0:
        return form(value)
    return [_each(form, element) for element in value]


def f(lang: str, value: Any, form: str = ".6f") -> Any:
    """A number, or each of a sequence, in a form of `format`; six decimals if none is given; no negative zero."""

    def said(number: Any) -> str:
        text = format(number, form)
        return text[1:] if re.fullmatch(r"-[0.]+", text) else text

    return _each(said, value)


def decimal(lang: str, value: Any, digits: int = arithmetic.SHOWN) -> Any:
    """A number, or each of a sequence, with so many significant digits."""
    return _each(lambda number: arithmetic.decimal(float(number), digits), value)


def minus(lang: str, value: Any) -> Any:
    """Numbers that are formatted, with the sign of arithmetic instead of a hyphen."""
    return _each(lambda text: text.replace("-", "−"), value)


def factor(lang: str, number: str) -> str:
    """A number as it stands behind a sign of multiplication: a negative one in parentheses."""
    return f"({number})" if number.startswith("−") else number


def each(lang: str, values: Iterable[Any], form: str | Callable[[Any], str]) -> list[str]:
    """Each of a sequence, in a form of `str.format`, or as a link."""
    return [form.format(value) if isinstance(form, str) else form(value) for value in values]


def cells(lang: str, values: Iterable[Any]) -> str:
    """Values as the cells of a table."""
    return " | ".join(value.said(lang) if isinstance(value, Words) else str(value) for value in values)


def rows(lang: str, rows: Iterable[Iterable[Any]]) -> str:
    """Rows of values as the rows of a table."""
    return "\n".join(f"| {cells(lang, row)} |" for row in rows)


def listed(lang: str, values: Iterable[Any]) -> str:
    """Values as a list inside a sentence."""
    return COMMA.said(lang).join(value.said(lang) if isinstance(value, Words) else str(value) for value in values)


def said(lang: str, text: Any) -> str:
    """Arithmetic with its names in the page's language."""
    return say(text, lang)


def braced(lang: str, value: Any) -> str:
    """A value as an argument of a command of LaTeX, where braces before an expression would be Jinja's."""
    return f"{{{value}}}"


def vector(lang: str, numbers: Iterable[float]) -> str:
    """Numbers as a vector inside a line: (3, 4)."""
    return f"({', '.join(f'{x:g}' for x in numbers)})"


def vector_in_latex(lang: str, numbers: Iterable[float]) -> str:
    """Numbers as a vector inside a formula; what overflowed is infinite, or NaN."""
    special = {math.inf: r"\infty"}
    said = (r"\mathrm{NaN}" if math.isnan(x) else special.get(x) or f"{round(x, 6):g}" for x in map(float, numbers))
    return f"({', '.join(said)})"


def shape(lang: str, lengths: Iterable[int]) -> str:
    """Lengths in brackets: [3, 4]."""
    return f"[{', '.join(map(str, lengths))}]"


def bmatrix(lang: str, rows: Any) -> str:
    """Rows of numbers, formatted or as they are printed, as a matrix in LaTeX."""
    if isinstance(rows, np.ndarray):
        return arrays.matrix_of(rows)
    return markdown.bmatrix(rows)


def bytes_(lang: str, count: float) -> str:
    """A number of bytes: in MB from a million on."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count:,.0f} B"


def display(lang: str, lines: str) -> str:
    """Lines of LaTeX as displayed formulas, one below the other; for `{% filter display %}`."""
    return markdown.display_lines([line.strip() for line in lines.strip().splitlines()])


def formula(lang: str, latex: str, packed: bool = False) -> str:
    """LaTeX as a displayed formula, with its words in the page's language; `packed`, short ones side by side."""
    said = translated(latex, lang)
    return _packed(said.split(markdown.QUAD), arrays.ACROSS) if packed else markdown.display(said)


def formula_in_cell(lang: str, latex: str) -> str:
    """LaTeX as formulas in the cell of a table, one below the other."""
    parts = translated(latex, lang).replace("|", r"\vert ").split(markdown.QUAD)  # a | would end the cell
    return " <br> ".join(map(markdown.inline, parts))


def arithmetic_rows(lang: str, numbers: Iterable[Any]) -> str:
    """Numbers of a lesson as the rows of a table, each with its arithmetic and value."""
    return step_rows.rows_of(numbers, lang)


def equalities(lang: str, pairs: Iterable[tuple[str, closed_form.Numbers]]) -> str:
    """Letters and what they stand for, packed: closed forms, and decimals of those with roots."""
    return _packed((f"{name} {_closed(numbers)}" for name, numbers in pairs), ACROSS)


def _packed(formulas: Iterable[str], across: int) -> str:
    rows = arrays.side_by_side(([one] for one in formulas), across)
    return markdown.display_lines([markdown.QUAD.join(row) for row in rows])


def _closed(numbers: closed_form.Numbers) -> str:
    """Return = the closed form, with decimals unless it is rational; decimals alone if the form is long."""
    exact = closed_form.matrix(numbers)
    if not re.search(r"[a-z]{2}", str(numbers).replace("inf", "")):
        return f"= {exact}"
    decimals = rf"\approx {closed_form.matrix(closed_form.each(_decimals, numbers))}"
    return f"= {exact} {decimals}" if len(exact) <= LONG else decimals


def _decimals(written: Any) -> str:
    number = closed_form.value(written)
    return str(written) if math.isinf(number) else f"{round(number, 6) + 0.0:.6f}".rstrip("0").rstrip(".")
