"""Worked examples to do on paper, one file each: `lesson(array)` computes all of it from the weights.

A lesson lists itself, and all files of this folder are imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.equations import of_equations
from byhand.book.lessons.changes import with_changes
from byhand.book.lessons.lesson import LISTED, Content, Lesson, Maker
from byhand.book.numbers import closed_form
from byhand.book.numbers.exact import exact_array
from byhand.book.words.language import Words
from byhand.engine import registry
from byhand.errors import ByhandError, suggestion


def make(name: str, exact: bool = False, changes: Sequence[str] = ()) -> Lesson:
    """Build a worked example, with exact forms if `exact`, and with `changes` of its numbers, such as `W_K=W_Q`.

    Raises ByhandError for a wrong name, or a change that cannot be made.
    """
    return _made(find(name), exact, tuple(changes))


@cache
def _made(name: str, exact: bool, changes: tuple[str, ...]) -> Lesson:
    with np.errstate(all="ignore"):
        if changes:
            content = _changed(name, exact, changes)
        elif name in TITLES:
            content = _file_of(name).lesson(numbers(exact))
        else:
            content = _of_entry(name, exact)
        intro, steps, given = content
        title = TITLES[name] if name in TITLES else of_equations()[name].title
        return Lesson(name, title, intro, tuple(steps), given, changes)


def _changed(name: str, exact: bool, changes: tuple[str, ...]) -> Content:
    able = {key: _file_of(key) for key in TITLES if hasattr(_file_of(key), "GIVEN")}
    if name not in able:
        raise ByhandError(f"--set cannot change {name}. Use it with {', '.join(able)}.")
    start = with_changes(able[name].GIVEN, changes, getattr(able[name], "CHOICES", {}))
    _, steps, given = able[name].lesson(numbers(exact), start)
    said = ", ".join(changes)
    return Words(f"Changed: {said}.", f"改动：{said}。"), steps, given


def _file_of(name: str) -> Any:
    return _file(name.replace("-", "_"))


def _of_entry(stem: str, exact: bool) -> Content:
    try:
        return _file("of_entry").lesson(stem, numbers(exact))
    except TypeError:
        if not exact:
            raise
        raise ByhandError(f"{stem} uses functions that have no exact form. Leave out --exact.") from None


def _file(name: str) -> Any:
    return import_module(f"{__name__}.{name}")


def find(name: str) -> str:
    """Return the name of the example with this name, title, or part of a single title, in either language.

    An equation without an example of its own has one with its entry's numbers. Raises ByhandError if there is none,
    or several.
    """
    asked = _plain(name[:80])
    if asked in TITLES:
        return asked
    titles = {(key, title): _plain(title) for key, words in TITLES.items() for title in (words.en, words.zh)}
    for fits in (str.startswith, str.__contains__):
        found = sorted({key for (key, _), title in titles.items() if len(asked) > 1 and fits(title, asked)})
        if len(found) == 1:
            return found[0]
        if found:
            raise ByhandError(f"{name[:80]!r} fits several worked examples. Use one of {', '.join(found)}.")
    for stem, entry in ENTRIES.items():
        if asked in map(_plain, (stem, registry[stem].title, entry.title_zh)):
            return stem
    raise ByhandError(f"there is no worked example or equation {name[:80]!r}. {suggestion(asked, TITLES)}")


def _plain(name: str) -> str:
    """Return a name in the form of the lessons' names: `Cross_Entropy` becomes `cross-entropy`."""
    return name.casefold().replace("_", "-").replace(" ", "-")


def numbers(exact: bool) -> Maker:
    """Return the function that makes arrays of Exacts, or of float64."""
    return (lambda nested: exact_array(closed_form.array(nested))) if exact else closed_form.array


for _module in iter_modules(__path__):
    _file(_module.name)
TITLES = {name: title for _, name, title in sorted(LISTED)}
