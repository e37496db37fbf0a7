"""Templates that stand in pages: text of the page's language around expressions, which Jinja evaluates.

An expression calls *answers* (`answers/`: numbers of the code, formats) and blocks (`blocks/`: parts of a page).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from byhand.book.pages.answers import ANSWERS, FORMATS
from byhand.book.pages.blocks import BLOCKS
from byhand.book.pages.blocks.excerpts import link_definition
from byhand.book.pages.blocks.markdown import link, link_equation
from byhand.book.words.language import COMMA, Words
from byhand.errors import ByhandError, brief

FILE = "<template>"  # as Jinja names the code of a template from a string
MEND = "Correct the template; its names are those of src/byhand/book/pages/answers and blocks."


def rendered(template: str, page: Path, line: int, lang: str) -> str:
    """Return what a template says on a page; ByhandError in one line, with the page's line.

    line  of the page, above the template's first
    """
    try:
        said = environment(lang).from_string(template).render(_of_page(page, lang))
    except TemplateSyntaxError as error:
        raise ByhandError(f"{page.name}:{line + error.lineno}: {brief(error, 200)} {MEND}") from None
    except Exception as error:  # whatever an answer raises
        frames = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
        raise ByhandError(f"{page.name}:{line + (frames or [0])[-1]}: {brief(error, 200)}. {MEND}") from None
    return said.strip("\n")


def _of_page(page: Path, lang: str) -> dict[str, Any]:
    """Return the blocks, and links: to an equation's page, to a definition, and to a place of a finding."""
    links = {
        "equation": lambda stem: link_equation(page, stem, lang),
        "definition": partial(link_definition, page),
        "place": partial(link, page),
        "comma": COMMA,
    }
    return {name: partial(block, page, lang) for name, block in BLOCKS.items()} | links


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


def asked(template: str) -> list[str]:
    """Return all that a template evaluates, in order, without the words of its language."""
    return list(_asked(environment("en").parse(template)))


def literal(template: str) -> str:
    """Return the text of a template that no expression makes."""
    return "".join(data.data for data in environment("en").parse(template).find_all(nodes.TemplateData))


def _asked(node: nodes.Node, argument: bool = False) -> Iterator[str]:
    """Yield the nodes of a template: texts only as arguments, and the parts of a sentence in any order."""
    if isinstance(node, nodes.Output):
        yield from sorted(" ".join(_asked(part)) for part in node.nodes if not isinstance(part, nodes.TemplateData))
        return
    if not isinstance(node, nodes.Const):
        yield " ".join([type(node).__name__, *(str(v) for k, v in node.iter_fields() if k in ("name", "attr", "op"))])
    elif argument or not isinstance(node.value, str):
        yield repr(node.value)
    inside = argument or isinstance(node, nodes.Call | nodes.Filter)
    for child in node.iter_child_nodes(only=["node"]):
        yield from _asked(child, argument)
    for child in node.iter_child_nodes(exclude=["node"]):
        yield from _asked(child, inside)
