"""The site's first page: a card whose numbers readers move, three doors, then what docs/index.md says."""

import json
import re
import tomllib
from html import escape, unescape
from itertools import islice
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from byhand.book.lessons.examples.paper_gpt import TEXT, VOCABULARY
from byhand.book.numbers.arithmetic import decimal
from live.explorer import heat_maps
from live.export import as_json
from live.pages import graph_of

LESSON, DIGITS = "next-word", 4
WORDS = Path(__file__).with_suffix(".toml")
TITLE = re.compile(
    r"(?:<p><a[^>]*>[^<]*</a></p>\s*)?(<section[^>]*>\s*)?<h1>.*?</h1>", re.DOTALL
)  # and the other language
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
FORMULA = re.compile(r"<annotation.*?</annotation>|<[^>]+>", re.DOTALL)
SHORT = 160  # characters of a description
END = re.compile(r"(?<=[.!?]) |(?<=[。！？])")


def first_page(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> str | None:
    """Give the first page its template, its words and its numbers, and the search page its words."""
    lang = "zh" if app.config.language.startswith("zh") else "en"
    said = tomllib.loads(WORDS.read_text(encoding="utf-8"))[lang]
    if page == "search":
        context["where_said"] = said["search"]
    if page != "index":
        return None
    data = as_json(graph_of(LESSON), lang)
    cells = data["values"]
    of = {name: first for name, _, first, *_ in reversed(data["arrays"]) if name}  # a later pass has the same names
    powers, total = (data["arrays"][k][2] for k in data["steps"][0]["reads"][1:])
    words = [getattr(word, lang) for word in VOCABULARY]
    folder = Path(app.outdir)
    film = Path("film", f"{folder.name}.webp")
    context |= {
        "film": f"../{film.as_posix()}" if (folder.parent / film).is_file() else "",
        "body": TITLE.sub(r"\1", context["body"], count=1),
        "said": said,
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/"),
        "number": lambda cell: decimal(cells[cell], DIGITS),
        "cell": of | {"exp": powers, "total": total, "target": int(cells[of["y"]])},
        "words": words,
        "text": ("" if lang == "zh" else " ").join(words[i] for i in TEXT[:-1]),
        "maps": heat_maps(),
    }
    return "front.html"


def described(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Say in a page's head what it is about: its first paragraph, and the picture that a shared link shows."""
    said = next(filter(None, map(_plain, islice(PARAGRAPH.findall(context.get("body", "")), 9))), "")
    facts = {"og:title": unescape(FORMULA.sub("", context.get("title", ""))) or "byhand", "og:type": "article"}
    base, picture = app.config.html_baseurl, "_static/card.png"
    facts["og:image"] = f"{base}{picture}" if base else context["pathto"](picture, True)
    if said:
        facts["og:description"] = said
    tags = [f'<meta property="{name}" content="{escape(value)}">' for name, value in facts.items()]
    tags += [f'<meta name="description" content="{escape(said)}">'] * bool(said)
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags])


def _plain(html: str) -> str:
    """Return a paragraph's text, whole sentences as far as they are short; "" for a link to the other language."""
    text = " ".join(unescape(FORMULA.sub("", html)).split())
    kept = ""
    for sentence in END.split(text):
        if len(kept) + len(sentence) > SHORT and kept:
            break
        kept += " " * (kept.isascii() and bool(kept)) + sentence
    return kept if len(text) > 20 else ""


def setup(app: Sphinx) -> None:
    """Connect both; the body is whole before."""
    app.connect("html-page-context", described, priority=600)
    app.connect("html-page-context", first_page, priority=700)
