"""Sphinx's settings for both languages; `build.py` sets `language` for each."""

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "build")]

project = "byhand"
extensions = ["myst_parser", "formulas", "front", "terms"]
source_suffix = {".md": "markdown"}
root_doc = "index"
myst_heading_anchors = 3
locale_dirs = ["locale"]
gettext_auto_build = True
html_theme = "furo"
html_title = "byhand"
html_favicon = "../../src/byhand/web/icon.svg"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css", "terms.css"]
html_js_files = [(name, {"defer": "defer"}) for name in ("terms.js", "languages.js")]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_search_language = "pairs"
html_math_renderer = "mathml"
suppress_warnings = ["myst.header", "toc.not_included"]

FORMULA = r'<span class="math notranslate nohighlight"><math>(?:(?!</math>).)*</math></span>'
TOGETHER = re.compile(
    rf"[（“(]*{FORMULA}[，。、；：）”,.;:)]*"  # a formula and its comma
    r'|(?<=<span class="pre">)-[-\w]{1,24}(?=</span>)',  # --flag
    re.DOTALL,
)
CHINESE = "\u3400-\u9fff"


class SearchPairs(SearchEnglish):
    """English words by their stems, and Chinese by each pair of neighbouring characters.

    Chinese has no spaces, and a dictionary would have to cut the page and the question alike. Pairs need no
    dictionary, and the same few lines cut both.
    """

    lang = "pairs"
    language_name = "English"  # Sphinx names the stemmer in the page by it
    js_splitter_code = r"""
var splitQuery = (query) =>
  (query.match(/[\u3400-\u9fff]+|(?:(?![\u3400-\u9fff])[\p{Letter}\p{Number}_])+/gu) || []).flatMap((run) =>
    /^[\u3400-\u9fff]{2}/.test(run) ? [...run].slice(1).map((c, i) => run[i] + c) : [run]
  );
const asText = Search.htmlToText; // of a page, for a result's excerpt: formulas without their LaTeX
Search.htmlToText = (html, anchor) => asText(html.replace(/<annotation.*?<\/annotation>/gs, ""), anchor);
"""

    def split(self, input: str) -> list[str]:
        """Cut a text into words and pairs."""
        terms: list[str] = []
        for run in re.findall(rf"[{CHINESE}]+|[^\W{CHINESE}]+", input):
            chinese = re.match(rf"[{CHINESE}]{{2}}", run)
            terms += [a + b for a, b in pairwise(run)] if chinese else [run]
        return terms


def kept_together(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Let no line begin with the comma behind a formula, or end within a flag: browsers break there."""
    if "body" in context:
        context["body"] = TOGETHER.sub(r'<span class="together">\g<0></span>', context["body"])


def setup(app: Sphinx) -> None:
    """Make the search language known, and what stays on one line."""
    app.add_search_language(SearchPairs)
    app.connect("html-page-context", kept_together)
