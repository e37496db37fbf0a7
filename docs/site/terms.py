"""Terms of the glossary, defined where a section first uses them: on hover, focus or touch (static/terms.js).

The glossary's own page has the definitions: the first two columns of its table.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

DOCS, GLOSSARY = Path(__file__).resolve().parents[1], "guides/glossary"
ROW = re.compile(r"^\| ([^|`-][^|]*?) \| ([^|]+?) \| [^|]+ \| .* \| .* \|$", re.MULTILINE)
OTHERWISE = {"merge", "合并"}  # words that pages mostly use in another meaning
KNOWN: dict[
    str, tuple[dict[str, str], re.Pattern[str]]
] = {}  # by language: definitions by term, and what matches one
KEPT = (nodes.title, nodes.reference, nodes.literal, nodes.literal_block, nodes.math, nodes.raw, nodes.table)


def read(app: Sphinx) -> None:
    """Read the terms and their definitions from the glossary's page."""
    is_english = app.config.language == "en"
    page = DOCS / f"{GLOSSARY}{'' if is_english else '.zh-CN'}.md"
    rows = ROW.findall(page.read_text(encoding="utf-8"))[1:]
    known = {term.partition(" (")[0].lower(): said for term, said in rows if term not in OTHERWISE}
    names = "|".join(re.escape(term) for term in sorted(known, key=len, reverse=True))
    word = rf"(?<![\w-])(?:{names})(?:e?s)?(?![\w-])" if is_english else names
    KNOWN[app.config.language] = known, re.compile(word, re.IGNORECASE)


def mark(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Mark the first use of each term in the prose of each section."""
    known, word = KNOWN[app.config.language]
    if page in (GLOSSARY, app.config.root_doc):
        return
    met: dict[int, set[str]] = {}
    for text in list(tree.findall(nodes.Text)):
        above = list(_above(text))
        if not any(isinstance(node, nodes.paragraph) for node in above) or any(
            isinstance(node, KEPT) for node in above
        ):
            continue
        section = next((node for node in above if isinstance(node, nodes.section)), tree)
        seen, made, end = met.setdefault(id(section), set()), [], 0
        for found in word.finditer(text):
            term = next(t for t in (found[0].lower(), found[0].lower()[:-1], found[0].lower()[:-2]) if t in known)
            if term in seen:
                continue
            seen.add(term)
            at = f'class="term" tabindex="0" aria-describedby="term-{[*known].index(term)}"'
            made += [
                nodes.Text(text[end : found.start()]),
                nodes.raw("", f"<span {at}>{escape(found[0])}</span>", format="html"),
            ]
            end = found.end()
        if made:
            text.parent.replace(text, [*made, nodes.Text(text[end:])])


def _above(node: nodes.Node) -> Any:
    while node := node.parent:
        yield node


def define(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Add the definitions of the marked terms, outside what the search reads."""
    if used := sorted({int(n) for n in re.findall(r'aria-describedby="term-(\d+)"', context.get("body", ""))}):
        said = [*KNOWN[app.config.language][0].values()]
        lines = "".join(f'<span id="term-{n}">{escape(said[n])}</span>' for n in used)
        context["body"] += f'<div hidden class="terms">{lines}</div>'


def setup(app: Sphinx) -> None:
    """Connect the three."""
    app.connect("builder-inited", read)
    app.connect("doctree-resolved", mark)
    app.connect("html-page-context", define, priority=650)
