"""Hooks in a page of the site: which matrices and rows of it are which numbers of a lesson's graph.

What prints a lesson's arrays says which numbers each matrix has; nothing reads them out of LaTeX.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from byhand.book.lessons.examples import make
from byhand.book.lessons.lesson import Array
from byhand.book.lessons.letters import label, letter
from byhand.book.numbers import closed_form
from byhand.book.words.language import say
from byhand.errors import ByhandError
from live.entries import FORMULA, as_text, blocks, graph_of_entry
from live.export import as_json
from live.graph import LessonGraph, Numbered
from live.prose import with_buttons, with_cells
from live.spots import is_listed, lesson_of, spots
from live.working import graph_of
from pages.blocks.arrays import given_parts, matrices, matrix_of, number_as_text, rounded
from pages.blocks.lessons import is_plain

BLOCK = re.compile(r"(<!-- generated: (lesson|given|worked) ([\w-]+)([^\n]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
PICTURE = re.compile(r"(<!-- generated: picture ([\w-]+) -->\n)\s*(.*?)\s*(<!-- end -->)", re.DOTALL)
STEP = re.compile(r"^\*\*(\d+)\.\*\* ", re.MULTILINE)
MATH = re.compile(r"```\{math\}\n(.*?)\n```", re.DOTALL)
WORKED = re.compile(MATH.pattern + r"(\n\n(?:\|[^\n]*\n)+)?", re.DOTALL)  # with the table of its arithmetic
MATRIX = re.compile(r"\\begin\{bmatrix\}(.*?)\\end\{bmatrix\}", re.DOTALL)
NUMBER = re.compile(r"\S+ = -?[\d.]+")
LINES = re.compile(r" \\\\\[4pt\]\n")
PRINTED = re.compile(r"(?<![\w-])\d")  # in a picture's words
MOST_LINES = 6  # of a displayed block of given matrices
Writer = Callable[[str], str]
Printed = dict[str, Any]  # by LaTeX: numbers as text, and as a matrix


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
    marks = [*BLOCK.finditer(text)]
    written = rounded if is_plain(text) else str
    lessons = {mark[3]: graph_of(mark[3]) for mark in marks if mark[2] == "lesson"}
    entries = {mark[3]: graph_of_entry(mark[3]) for mark in marks if mark[2] == "worked"}

    def block(mark: re.Match[str]) -> str:
        head, kind, name, _, body, end = mark.groups()
        found = (entries if kind == "worked" else lessons).get(name)
        if found is None:  # its steps are not on this page
            return mark[0]
        if kind == "worked":
            return head + _worked(found, body, name) + end
        if kind == "given":
            return head + _section(_given(found, body), name) + end
        return head + _steps(found, body, written, name) + end

    def picture(mark: re.Match[str]) -> str:
        head, name, body, end = mark.groups()
        shown = lesson_of(name, lessons)
        places = spots(name, lessons[shown], lang) if shown else []
        if not (shown and (places or (is_listed(name, shown) and PRINTED.search(body)))):
            return mark[0]
        facts = f'data-lesson="{shown}" data-spots="{_compact(places)}"'
        return f'{head}\n<div class="live-picture" {facts}>\n\n{body}\n\n</div>\n\n{end}'

    if not lessons and not entries:
        return text
    text = with_cells(with_buttons(PICTURE.sub(picture, BLOCK.sub(block, text)), lessons), lessons)
    data = (_compact(as_json(found, lang)).replace("</", "<\\/") for found in (*lessons.values(), *entries.values()))
    scripts = [f'<script type="application/json" class="live-data">{one}</script>' for one in data]
    return "\n\n".join([text, *scripts]) + "\n"


def _compact(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _section(body: str, name: str, step: int = 0, is_rounded: bool = False) -> str:
    places = ' data-places="2"' if is_rounded else ""
    facts, place = f'data-lesson="{name}" data-step="{step}"{places}', f"{name}-{step}"
    link = f'<a class="live-anchor" id="{place}" href="#{place}">#{step}</a>\n\n' if step else ""
    return f'\n<div class="live-step" {facts}>\n\n{body.strip()}\n\n{link}</div>\n\n'


def _worked(found: LessonGraph, body: str, stem: str) -> str:
    """Mark the displayed blocks of an equation's worked example, with the tables below them."""
    shown = blocks(found, stem)

    def marked(block: re.Match[str]) -> str:
        step, part, lines = next(shown, FORMULA)
        if not lines:
            return block[0]
        table = block[2] or ""
        return _section(_shown(block[0].removesuffix(table), part, lines) + table, found.lesson.name, step)

    return WORKED.sub(marked, body)


def _steps(found: LessonGraph, body: str, written: Writer, name: str) -> str:
    """Mark each step of a lesson's block."""
    pieces = STEP.split(body)
    if len(pieces) < 3:
        raise ByhandError(f"a block of the lesson {name} has no numbered step. Correct STEP in {__name__}.")
    marked = []
    for number, content in zip(map(int, pieces[1::2]), pieces[2::2], strict=True):
        said = f"**{number}.** {_step(found, number, content, written)}"
        marked.append(_section(said, name, number, written is rounded))
    return pieces[0] + "".join(marked)


def _step(found: LessonGraph, number: int, body: str, written: Writer) -> str:
    """Mark the matrices of a step: the last block of them are its results."""
    step, link = found.lesson.steps[number - 1], found.links[number - 1]
    results, inputs = list(_blocks(found, link.makes)), list(_blocks(found, link.reads))
    printed = _printed((*step.inputs, *step.kept, *step.arrays), written)
    blocks = [m for m in MATH.finditer(body) if MATRIX.search(m[1]) or NUMBER.fullmatch(m[1])]
    parts, end = [], 0
    for block in blocks:
        order, part = ([*inputs, *results], "read") if block is not blocks[-1] else ([*results, *inputs], "made")
        parts += [body[end : block.start()], _marked(block, printed, order, part)]
        end = block.end()
    return "".join([*parts, body[end:]])


def _blocks(found: LessonGraph, places: Iterable[int]) -> Iterator[Shown]:
    """Yield the matrices of the arrays at these places, one for each place along the axes before the last two."""
    for place in places:
        cells = found.arrays[place]
        name = "" if cells.shape else cells.label or cells.name
        whole = np.atleast_2d(np.asarray(cells.data, dtype=np.float64).reshape(cells.shape))
        for k, part in enumerate(whole.reshape(-1, *whole.shape[-2:])):
            yield Shown(place, cells.first + k * part.size, part, name=name)


def _given(found: LessonGraph, body: str) -> str:
    """Mark the given matrices, and the given numbers that may be changed."""
    free = [(k, a) for k, a in enumerate(found.arrays) if not a.programs and a.name]
    shown = list(_blocks(found, (k for k, a in free if a.data.shape)))
    shown += [
        Shown(k, a.first, sign * np.atleast_2d(a.data), sign, (a.label or a.name).removeprefix("−"))
        for k, a in free
        if a.is_free and not a.data.shape and not a.name.startswith("∂")
        for sign in [-1 if a.name.startswith("−") else 1]  # −rate is given as the rate
    ]
    printed = _printed_of_given(found.lesson.name)
    return MATH.sub(lambda block: _marked(block, printed, shown, "given"), MATH.sub(_short, body))


def _short(block: re.Match[str]) -> str:
    """Cut a long displayed block into several: no browser breaks a formula between sheets."""
    lines = LINES.split(block[1].removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}"))
    if len(lines) <= MOST_LINES:
        return block[0]
    parts = (" \\\\[4pt]\n".join(lines[at : at + MOST_LINES]) for at in range(0, len(lines), MOST_LINES))
    return "\n\n".join(f"```{{math}}\n\\begin{{aligned}}\n{part}\n\\end{{aligned}}\n```" for part in parts)


def _marked(block: re.Match[str], printed: Printed, shown: Sequence[Shown], part: str) -> str:
    """Wrap a displayed block whose matrices are known: lines of LaTeX, and of what `_match` returns."""
    body = block[1].removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    lines: list[list[Any]] = []
    for line in LINES.split(body):
        pieces: list[Any] = []
        end = 0
        for matrix in MATRIX.finditer(line):
            if one := _match(matrix[0], printed, shown):
                pieces += [line[end : matrix.start()], one]
                end = matrix.end()
        name, _, number = line.partition(" = ")
        named = [one for one in shown if one.name and one.name == label(name.removeprefix("& "))]
        if not MATRIX.search(line) and (one := _match(number, printed, named)):
            pieces, end = [f"{name} =", one], len(line)
        pieces.append(line[end:])
        lines.append([piece.removeprefix("& ").strip() if isinstance(piece, str) else piece for piece in pieces])
    if not any(isinstance(piece, list) for line in lines for piece in line):
        return block[0]
    return _shown(block[0], part, lines)


def _shown(block: str, part: str, lines: list[list[Any]]) -> str:
    facts = escape(_compact(lines))
    return f'<div class="live-math" data-part="{part}" data-show="{facts}">\n\n{block}\n\n</div>'


def _match(latex: str, printed: Printed, shown: Sequence[Shown]) -> list[Any] | None:
    """Return what the page needs of the first block, or columns of one, that was printed and matched none before."""
    texts, data = printed.get(latex, ((), np.zeros((0, 1))))
    rows, columns = data.shape
    for one in (one for one in shown if len(one.data) == rows):
        for at in range(0, one.data.shape[1] - columns + 1, columns):  # W_Q is the first columns of W_qkv
            if at not in one.used and np.allclose(data, one.data[:, at : at + columns], rtol=1e-9, atol=1e-15):
                one.used.add(at)
                return [one.array, one.first + at, columns, one.data.shape[1], list(texts), one.sign]
    return None


def _printed(arrays: Iterable[Array], written: Writer) -> Printed:
    """Return the matrices and numbers of a step's arrays by their LaTeX."""
    found = [np.asarray(data, float) for array in arrays for _, data in matrices(array)]
    texts = [[written(number_as_text(number)) for number in x.ravel().tolist()] for x in found]
    return {written(matrix_of(x)): (own, np.atleast_2d(x)) for own, x in zip(texts, found, strict=True)}


def _printed_of_given(name: str) -> Printed:
    """Return the given matrices and numbers of a lesson by their LaTeX."""
    given = [(say(array, "en"), text) for array, text in make(name, exact=True).given]
    found = [part for array, text in given for part in given_parts(letter(array), text)]
    texts = ([as_text(form) for form in forms.ravel()] for _, _, forms in found)
    data = (np.atleast_2d(closed_form.array(forms.tolist())) for _, _, forms in found)
    return {latex: printed for (_, latex, _), *printed in zip(found, texts, data, strict=True)}
