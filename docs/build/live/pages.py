"""Hooks in a page of the site: which matrices and rows of it are which numbers of a lesson's graph.

A page's matrices are found by their numbers, not by their letters or words: what prints them may change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import Any

import numpy as np

from byhand.book.lessons.lesson import Array
from byhand.book.lessons.letters import label
from byhand.book.numbers import closed_form
from byhand.errors import ByhandError
from live.export import as_json
from live.graph import LessonGraph, Numbered
from live.spots import lesson_of, spots
from live.working import graph

BLOCK = re.compile(r"(<!-- generated: (lesson|given) ([\w-]+)([^\n]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
PICTURE = re.compile(r"(<!-- generated: picture ([\w-]+) -->\n)\s*(.*?)\s*(<!-- end -->)", re.DOTALL)
STEP = re.compile(r"^\*\*([A-Z]?)(\d+)\.\*\* ", re.MULTILINE)
MATH = re.compile(r"```\{math\}\n(.*?)\n```", re.DOTALL)
MATRIX = re.compile(r"\\begin\{bmatrix\}(.*?)\\end\{bmatrix\}", re.DOTALL)
NUMBER = re.compile(r"\S+ = -?[\d.]+")
LINES = re.compile(r" \\\\\[4pt\]\n")
MOST_LINES = 6  # of a displayed block of given matrices
CLOSE = (1e-5, 6e-3)  # of a number: six digits as printed, or three


@dataclass
class Shown:
    """A block of numbers that a page may show: some cells, in rows, of an array, or these with the other sign."""

    array: int
    first: int
    data: np.ndarray
    sign: int = 1
    name: str = ""  # of a single number
    used: set[int] = field(default_factory=set)  # columns at which it was shown


def hooked(text: str, lang: str) -> str:
    """Return a page with its lessons' steps and matrices marked, and the lessons' graphs at its end."""
    lessons = {mark[3]: graph_of(mark[3]) for mark in BLOCK.finditer(text) if mark[2] == "lesson"}

    def block(mark: re.Match[str]) -> str:
        head, kind, name, arguments, body, end = mark.groups()
        found = lessons.get(name)
        if found is None:  # its steps are not on this page
            return mark[0]
        if kind == "given":
            return head + _section(_given(found, body), name) + end
        return head + _steps(found, body, "brief" in arguments, name) + end

    def picture(mark: re.Match[str]) -> str:
        head, name, body, end = mark.groups()
        shown = lesson_of(name, lessons)
        places = shown and spots(name, lessons[shown], lang)
        if not places:
            return mark[0]
        facts = f'data-lesson="{shown}" data-spots="{_compact(places)}"'
        return f'{head}\n<div class="live-picture" {facts}>\n\n{body}\n\n</div>\n\n{end}'

    if not lessons:
        return text
    text = PICTURE.sub(picture, BLOCK.sub(block, text))
    data = (_compact(as_json(found, lang)).replace("</", "<\\/") for found in lessons.values())
    scripts = [f'<script type="application/json" class="live-data">{one}</script>' for one in data]
    return "\n\n".join([text, *scripts]) + "\n"


def _compact(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


graph_of = cache(graph)


def _section(body: str, name: str, step: int = 0) -> str:
    facts = f'data-lesson="{name}" data-step="{step}"'
    return f'\n<div class="live-step" {facts}>\n\n{body.strip()}\n\n</div>\n\n'


def _steps(found: LessonGraph, body: str, brief: bool, name: str) -> str:
    """Mark each step of a lesson's block."""
    pieces = STEP.split(body)
    if len(pieces) < 4:
        raise ByhandError(f"a block of the lesson {name} has no numbered step. Correct STEP in {__name__}.")
    marked = []
    for letter, number, content in zip(pieces[1::3], map(int, pieces[2::3]), pieces[3::3], strict=True):
        marked.append(_section(f"**{letter}{number}.** " + _step(found, number, content, brief), name, number))
    return pieces[0] + "".join(marked)


def _step(found: LessonGraph, number: int, body: str, brief: bool) -> str:
    """Mark the matrices of a step: the last block of them are its results."""
    step, link = found.lesson.steps[number - 1], found.links[number - 1]
    results = [*_shown(found, step.arrays, link.makes), *_whole(found, link.makes)]
    inputs = [*_shown(found, (*step.inputs, *step.kept), link.reads), *_whole(found, link.reads)]
    blocks = [m for m in MATH.finditer(body) if MATRIX.search(m[1]) or NUMBER.fullmatch(m[1])]
    parts, end = [], 0
    for block in blocks:
        own = [*results, *inputs] if block is blocks[-1] else [*inputs, *results]
        single = [one for one in own if one.name]
        parts += [body[end : block.start()], _marked(block, own, "made" if block is blocks[-1] else "read", single)]
        end = block.end()
    return "".join([*parts, body[end:]])


def _shown(found: LessonGraph, arrays: Iterable[Array], places: tuple[int, ...]) -> Iterator[Shown]:
    """Yield a step's arrays as blocks of cells: of the arrays at these places those with their names and numbers."""
    for array in arrays:
        data = np.asarray(array.data, dtype=np.float64)
        fits = [k for k in places if _equal(found.arrays[k], data)]
        named = [k for k in fits if found.arrays[k].name == array.name]
        for place in (named or fits)[:1]:
            yield from _blocks(place, found.arrays[place])


def _whole(found: LessonGraph, places: tuple[int, ...]) -> Iterator[Shown]:
    """Yield all arrays at these places: a page may show parts of one, such as queries' weights."""
    for place in places:
        yield from _blocks(place, found.arrays[place])


def _equal(cells: Numbered, data: np.ndarray) -> bool:
    own = np.asarray(cells.data, dtype=np.float64).ravel()
    return own.size == data.size and np.allclose(own, data.ravel(), rtol=1e-9, atol=1e-15)


def _blocks(place: int, cells: Numbered) -> Iterator[Shown]:
    """Yield an array's matrices, one for each place along the axes before the last two."""
    data = np.asarray(cells.data, dtype=np.float64).reshape(cells.shape)
    if data.ndim < 3:
        name = "" if data.ndim else cells.label or cells.name
        yield Shown(place, cells.first, np.atleast_2d(data), name=name)
        return
    rows, columns = data.shape[-2:]
    for k, part in enumerate(data.reshape(-1, rows, columns)):
        yield Shown(place, cells.first + k * rows * columns, part)


def _given(found: LessonGraph, body: str) -> str:
    """Mark the given matrices, and the given numbers that may be changed."""
    free = [(k, a) for k, a in enumerate(found.arrays) if not a.programs and a.name]
    matrices = [one for k, a in free if a.data.shape for one in _blocks(k, a)]
    settings = [
        Shown(k, a.first, sign * np.atleast_2d(a.data), sign, (a.label or a.name).removeprefix("−"))
        for k, a in free
        if a.is_free and not a.data.shape and not a.name.startswith("∂")
        for sign in [-1 if a.name.startswith("−") else 1]  # −rate is given as the rate
    ]
    return MATH.sub(lambda block: _marked(block, matrices, "given", settings), MATH.sub(_short, body))


def _short(block: re.Match[str]) -> str:
    """Cut a long displayed block into several: no browser breaks a formula between sheets."""
    lines = LINES.split(block[1].removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}"))
    if len(lines) <= MOST_LINES:
        return block[0]
    parts = (" \\\\[4pt]\n".join(lines[at : at + MOST_LINES]) for at in range(0, len(lines), MOST_LINES))
    return "\n\n".join(f"```{{math}}\n\\begin{{aligned}}\n{part}\n\\end{{aligned}}\n```" for part in parts)


def _marked(block: re.Match[str], shown: Sequence[Shown], part: str, numbers: Sequence[Shown] = ()) -> str:
    """Wrap a displayed block whose matrices are known: lines of LaTeX, and of what `_match` returns."""
    body = block[1].removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    lines: list[list[Any]] = []
    for line in LINES.split(body):
        pieces: list[Any] = []
        end = 0
        for matrix in MATRIX.finditer(line):
            texts = [row.split("&") for row in matrix[1].split(r"\\")]
            if one := _match(texts, shown):
                pieces += [line[end : matrix.start()], one]
                end = matrix.end()
        letter, _, number = line.partition(" = ")
        named = [one for one in numbers if one.name == label(letter.removeprefix("& "))]
        if not MATRIX.search(line) and (one := _match([[number]], named)):
            pieces, end = [f"{letter} =", one], len(line)
        pieces.append(line[end:])
        lines.append([piece.removeprefix("& ").strip() if isinstance(piece, str) else piece for piece in pieces])
    if not any(isinstance(piece, list) for line in lines for piece in line):
        return block[0]
    facts = escape(_compact(lines))
    return f'<div class="live-math" data-part="{part}" data-show="{facts}">\n\n{block[0]}\n\n</div>'


def _texts(rows: list[list[str]]) -> list[list[str]]:
    return [[_plain(number) for row in rows for number in row]]


def _match(texts: list[list[str]], shown: Sequence[Shown]) -> list[Any] | None:
    """Return what the page needs of the first block, or columns of one, that a matrix prints and none before did."""
    try:
        printed = np.array([[_value(number) for number in row] for row in texts])
    except (ByhandError, ValueError):
        return None
    rows, columns = printed.shape
    for close in CLOSE:
        for one in (one for one in shown if len(one.data) == rows):
            for at in range(0, one.data.shape[1] - columns + 1, columns):  # W_Q is the first columns of W_qkv
                part = one.data[:, at : at + columns]
                if at not in one.used and np.allclose(printed, part, rtol=close, atol=1e-9):
                    one.used.add(at)
                    return [one.array, one.first + at, columns, one.data.shape[1], *_texts(texts), one.sign]
    return None


def _value(latex: str) -> float:
    return closed_form.value(_written(latex))


def _plain(latex: str) -> str:
    """Return a number in LaTeX as text."""
    written = _written(latex).replace("sqrt", "√").replace("**", "^").replace("-", "−")
    written = re.sub(r" *\* *", " × ", written)
    power = re.fullmatch(r"(?:(.+) × )?10\^\((−\d+)\)", written.replace("inf", "∞"))
    if power:
        return f"{power[1] or 1}e{power[2]}"
    return re.sub(r"\((\w+)\)", r"\1", written.replace("inf", "∞").replace("log(", "ln("))


def _written(latex: str) -> str:
    """Return a number in LaTeX as a closed form."""
    text = latex.strip()
    for _ in range(3):
        text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)", text)
        text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
        text = re.sub(r"\^\{([^{}]*)\}", r"**(\1)", text)
        text = re.sub(r"\\(?:ln|log)\s*\\left\(([^{}]*)\\right\)", r"log(\1)", text)
    text = re.sub(r"\\(?:ln|log) ?(\w+)", r"log(\1)", text)
    return (
        text.replace(r"\cdot", "*")
        .replace(r"\infty", "inf")
        .replace("∞", "inf")
        .replace("\\left", "")
        .replace("\\right", "")
        .replace("e**", "exp")
    )
