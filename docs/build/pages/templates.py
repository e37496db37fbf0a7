"""Templates that stand in pages: text of the page's language around expressions, which Jinja evaluates.

An expression calls *answers*, formats (`formats.py`) and blocks (`blocks/`: parts of a page that code writes).
Answers are the public names of the Python file beside the page, such as `guides/kv-cache.py`, and of `answers/`.
A template that many pages share is a part of its own, a file of `parts/` for each language, to which `name` is the
first word behind its name in a mark and `words` are all of them.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from functools import cache, lru_cache, partial
from importlib import import_module
from inspect import getmembers, isfunction
from pathlib import Path
from pkgutil import iter_modules
from runpy import run_path
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from byhand.book.words.language import COMMA, PAGE, SEMICOLON, Words
from byhand.errors import ByhandError, brief, reason
from pages import answers, formats
from pages.blocks.lessons import given, lesson, lesson_intro
from pages.blocks.markdown import (
    ROOT,
    in_language,
    link,
    link_definition,
    link_equation,
    link_titled,
    relative,
    with_minus,
)

FILE = "<template>"  # as Jinja names the code of a template from a string
MEND = "Correct the template, or the answer: its names are those of the file beside it and of docs/build/pages."
BYTE_ORDER = "\ufeff"
PARTS = Path(__file__).with_name("parts")


def read(page: Path) -> str:
    """Return the text of a page or a part; ByhandError if it is no UTF-8, or begins with a mark of that."""
    try:
        text = page.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ByhandError(
            f"{page.name} is no UTF-8 text: {error.reason} at byte {error.start}. Restore it."
        ) from None
    except OSError as error:
        raise ByhandError(f"{page.name} cannot be read: {reason(error)}. Restore it.") from None
    if text.startswith(BYTE_ORDER):
        raise ByhandError(f"{page.name} begins with a byte order mark. Save it without one.")
    return text


def rendered(template: str, page: Path, at: tuple[str, int], lang: str, **given: Any) -> str:
    """Return what a template says on a page, with names given; ByhandError in one line.

    at  the file of the template, and the line above its first
    """
    file, above = at
    try:
        said = _compiled(template, lang).render(_of_page(page, lang), **given)
    except TemplateSyntaxError as error:
        raise ByhandError(f"{file}:{above + error.lineno}: {brief(error, 200)} {MEND}") from None
    except Exception as error:  # whatever an answer raises
        frames = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
        said = str(error) if isinstance(error, ByhandError) else f"{brief(error, 200)}. {MEND}"
        raise ByhandError(f"{file}:{above + (frames or [0])[-1]}: {said}") from None
    return with_minus(said.strip("\n"))


@lru_cache(None)
def _compiled(template: str, lang: str) -> Template:
    return environment(lang).from_string(template)


def _part(part: str, page: Path, lang: str, *words: str) -> str:
    """Return a part of `parts/` on a page, of the words that follow its name in the mark."""
    file = PARTS / f"{part}{PAGE.said(lang)}.jinja"
    given = {"name": words[0] if words else "", "words": words}
    return rendered(read(file), page, (f"parts/{file.name}", 0), lang, **given)


BLOCKS = {block.__name__: block for block in (given, lesson, lesson_intro)}
KINDS = BLOCKS | {part: partial(_part, part) for part in (file.name.partition(".")[0] for file in PARTS.iterdir())}
"""What a mark may name: a block or a part, each a function (page, language, *words) -> Markdown."""


def beside(page: Path) -> dict[str, Any]:
    """Return the names of the Python file beside a page of docs/; none if there is no such file."""
    file = page.with_name(f"{page.name.partition('.')[0]}.py")
    return _run(file) if file.is_file() and file.is_relative_to(ROOT / "docs") else {}


@cache
def _run(file: Path) -> dict[str, Any]:
    return run_path(str(file))


def _public(names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in names.items() if not name.startswith("_")}


ANSWERS: dict[str, Any] = {"zip": zip, "enumerate": enumerate}
for _module in iter_modules(answers.__path__):
    ANSWERS |= _public(vars(import_module(f"{answers.__name__}.{_module.name}")))
FORMATS = {
    name.removesuffix("_"): form
    for name, form in getmembers(formats, isfunction)
    if name[0] != "_" and form.__module__ == formats.__name__
}


def _of_page(page: Path, lang: str) -> dict[str, Any]:
    """Return the answers beside a page, blocks and parts, links to an equation, a definition, a place, a page."""
    links = {
        "equation": lambda stem: link_equation(page, stem, lang),
        "definition": partial(link_definition, page),
        "place": partial(link, page),
        "named": partial(link, page, is_short=True),
        "titled": lambda stem: link_titled(page, in_language(stem, lang)),
        "to": lambda stem: relative(page, in_language(stem, lang)),
        "file": partial(relative, page),
        "comma": COMMA,
        "semicolon": SEMICOLON,
        "lang": lang,
    }
    kinds = {name: partial(kind, page, lang) for name, kind in KINDS.items()}
    return _public(beside(page)) | kinds | links


@lru_cache(2)
def environment(lang: str) -> ImmutableSandboxedEnvironment:
    """Return Jinja's sandbox with the answers, and with words said in `en` or `zh`."""

    def said(value: Any) -> Any:
        return value.said(lang) if isinstance(value, Words) else value

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=said
    )
    made.globals |= ANSWERS
    made.filters |= {name: partial(form, lang) for name, form in FORMATS.items()}
    return made
