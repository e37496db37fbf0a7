"""Scenes in words, for those who cannot see them: what each element shows, in the order in which it is declared."""

from __future__ import annotations

from collections.abc import Iterable

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.scene.charts import Bars, Chart, Polyline
from byhand.book.pictures.scene.elements import Across, Box, Caption, Cells, Column, Figure
from byhand.book.pictures.scene.measure import bar_words, box_lines
from byhand.book.words.language import COLON, COMMA, PAUSE, SEMICOLON, Said, Words, say

STOP = Words(".", "。")


def alternative(subject: Words, root: Figure, lang: str) -> str:
    """Return the subject of a picture, then what it shows, up to a full stop."""
    stop = STOP.said(lang)
    said = subject.said(lang) + stop + " " * (lang == "en")
    for i, part in enumerate(parts(root, lang)):
        whole = part.endswith(stop)  # a sentence of its own
        before = (f"{stop} " if lang == "en" else stop) if whole else SEMICOLON.said(lang)
        said += (before if i else "") + part.rstrip(stop)
    return said.rstrip() + ("" if said.rstrip().endswith(stop) else stop)


def parts(e: Figure, lang: str) -> list[str]:
    """Return what an element shows, the first of its parts after its title."""
    if e.says is not None:
        found = [say(e.says, lang)]
    else:
        found = [part for part in _parts(e, lang) if part]
        if isinstance(e, Column | Across) and e.join and found:
            found = [say(e.join, lang).join(found)]
        if e.title and found:
            found[0] = _named(say(e.title, lang), found[0], lang)
    return [part for part in found if part]


def _parts(e: Figure, lang: str) -> Iterable[str]:
    match e:
        case Column() | Across():
            return (part for child in e.children for part in parts(child, lang))
        case Caption():
            words = say(e.words, lang)
            return [words] if any(letter.isdigit() for letter in words) else []
        case Box():
            lines = [say(words, lang) for words in box_lines(e)]
            between = " " if isinstance(e.lines, str) else COLON.said(lang)
            return [between.join([*lines[:1], " ".join(lines[1:])]) if lines[1:] else "".join(lines)]
        case Cells():
            return _cells(e, lang)
        case Chart():
            at = [row(lang, e.x_words, e.said_at)] if len(e.said_at) else []
            return [*at, *(part for mark in e.marks for part in _mark(mark, e, lang))]
        case _:
            return []


def _mark(mark: object, e: Chart, lang: str) -> Iterable[str]:
    said = getattr(mark, "says", None)
    if said is not None:
        return [say(said, lang)]
    if isinstance(mark, Polyline):
        found = dict(zip(map(float, mark.xs), map(float, mark.ys), strict=True))
        return [row(lang, mark.words, [found[float(x)] for x in e.said_at])] if len(e.said_at) else []
    if isinstance(mark, Bars):
        return [COMMA.said(lang).join(say(words, lang) for words in bar_words(mark))]
    return [say(getattr(mark, "words", ""), lang)]


def _cells(e: Cells, lang: str) -> Iterable[str]:
    if not e.shown:
        return []
    if e.counted:
        first, last = e.values[0][0], e.values[-1][-1]
        return [Words(f"{first} to {last}", f"{first} 至 {last}").said(lang)]
    lines = [
        [_cell(value, lang) for j, value in enumerate(values) if (i, j) not in e.hidden]
        for i, values in enumerate(e.values)
    ]
    if e.rows:
        listed = [COMMA.said(lang).join(line) for line in lines]
        return [_named(say(name, lang), line, lang) for name, line in zip(e.rows, listed, strict=True)]
    if len(lines) == 1:
        return [COMMA.said(lang).join(lines[0])]
    each = (f"[{', '.join(line)}]" for line in lines)
    return [f"[{', '.join(each)}]"]


def _cell(value: float | Said, lang: str) -> str:
    return decimal(float(value), 3) if isinstance(value, (int, float)) else say(value, lang)


def _named(name: str, part: str, lang: str) -> str:
    """Return a part with its name: a matrix equals it, a list follows it."""
    name = name.replace("：", "，").replace(": ", ", ")
    if part.startswith("["):
        return f"{name} = {part}"
    return f"{name}{(PAUSE if COLON.said(lang) in part else COLON).said(lang)}{part}"


def row(lang: str, name: Said, values: Iterable[float], digits: int = 3) -> str:
    """Return a name and its numbers."""
    return _named(say(name, lang), COMMA.said(lang).join(decimal(float(x), digits) for x in values), lang)
