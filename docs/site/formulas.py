"""Formulas as MathML: what Sphinx renders them with, so that they are content without any script.

math-core converts and refuses what it does not know; a refusal is a warning with page and line, which ends the build.
"""

import json
import re
from html import escape, unescape
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
CONVERTERS = {annotated: LatexToMathML(annotation=annotated, fancy_error=False) for annotated in (True, False)}
# math-core would print the length behind a row's end; the style sheet spaces rows.
ROW_END = re.compile(r"\\\\\s*\[-?[\d.]+\s*[a-z]{2}\]")
LETTER = re.compile(r"^(?:,|\\quad)\s*")  # what stands between two matrices of a line
SHOWN = re.compile(r'(?<= data-show=")[^"]*')


def mathml(latex: str, where: nodes.Node | tuple[str, None], *, block: bool = False, annotated: bool = True) -> str:
    """Convert a formula; what cannot be converted is reported with the place where it stands."""
    if not latex.strip():
        LOGGER.warning("a formula is empty", location=where)
    try:
        return CONVERTERS[annotated].convert_with_local_state(ROW_END.sub(r"\\\\", latex), displaystyle=block)
    except LatexError as error:
        LOGGER.warning("%s in the formula %s", error, " ".join(latex.split()), location=where)
        return ""


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(f'<span class="math notranslate nohighlight">{mathml(node.astext(), node)}</span>')
    raise nodes.SkipNode


def displayed(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own; a long one scrolls within its box."""
    formula = mathml(node.astext(), node, block=True)
    self.body.append(f'<div class="math notranslate nohighlight">{formula}</div>\n')
    raise nodes.SkipNode


def letters(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Convert what the scripts set between the matrices of a lesson (`live.pages`)."""

    def converted(piece: Any) -> Any:
        short = isinstance(piece, str) and LETTER.sub("", piece)
        return mathml(short, (page, None), annotated=False) if short else piece

    def lines(shown: re.Match[str]) -> str:
        found = [[converted(piece) for piece in line] for line in json.loads(unescape(shown[0]))]
        return escape(json.dumps(found, ensure_ascii=False, separators=(",", ":")))

    if "body" in context:
        context["body"] = SHOWN.sub(lines, context["body"])


def unsearched(app: Sphinx, tree: nodes.document) -> None:
    """Keep LaTeX out of the search, which would find `top` and `text` on every page."""
    for kind in (nodes.math, nodes.math_block):
        for formula in tree.findall(kind):
            formula["classes"].append("no-search")


def setup(app: Sphinx) -> None:
    """Make the renderer known; `html_math_renderer` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.connect("doctree-read", unsearched)
    app.connect("html-page-context", letters)
