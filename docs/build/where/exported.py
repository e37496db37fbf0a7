"""The index of `where` and the tables of its search as plain values, for the site's search box (`docs/site/search/`).

The scripts hold the search's steps alone: every word list, sign, weight and pattern is exported from the package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from byhand.book.finding import formula, search, words
from byhand.book.finding.finding import Finding

WEIGHTS = ("FOUND", "SPREAD", "LITTLE", "BEST", "ALL", "ALIKE", "LONGEST")
PATTERNS = {
    "formula": search.FORMULA,
    "dotted": search.DOTTED,
    "name": search.NAME,
    "isName": search.IS_NAME,
    "latin": search.WORD,
    "filler": words.FILLER,
    "ending": words.ENDING,
    "word": words.WORD,
    "wide": words.WIDE,
    "hump": words.HUMP,
    "layout": formula._LAYOUT,  # pyright: ignore[reportPrivateUsage]
}


def exported(href: Callable[[Finding, str], str], lang: str) -> dict[str, Any]:
    """Return all that the scripts need, in `en` or `zh`.

    href  the address of an answer in a language, from the folder of the language; "" for none
    """
    content = json.loads(search.INDEX.read_text(encoding="utf-8"))
    return {
        "answers": [_answer(finding, href, lang) for finding in search.stored().findings()],
        "language": content["language"],
        "words": content["words"],
        "formulas": content["formulas"],
        "phrases": content["phrases"],
        "weights": {name: getattr(search, name) for name in WEIGHTS},
        "patterns": {name: _pattern(pattern) for name, pattern in PATTERNS.items()},
        "stop": sorted(words.STOP),
        "longest": words.LONGEST,
        "signs": list(formula._SIGNS.items()),  # pyright: ignore[reportPrivateUsage]
        "commands": formula._COMMANDS,  # pyright: ignore[reportPrivateUsage]
        "aliases": formula._ALIASES,  # pyright: ignore[reportPrivateUsage]
        "operations": sorted(formula.OPERATIONS),
        "alike": formula.ALIKE,
        "different": formula.DIFFERENT,
        "longestFactor": formula.LONGEST_FACTOR,
        "otherLetters": formula.OTHER_LETTERS,
    }


def _answer(finding: Finding, href: Callable[[Finding, str], str], lang: str) -> list[Any]:
    """Return [name, title, kind, address, lines, command, names of other answers]."""
    said = [line.said(lang) for line in finding.says]
    return [
        finding.name,
        finding.title.said(lang),
        finding.kind,
        href(finding, lang),
        said,
        finding.command,
        list(finding.see),
    ]


def _pattern(pattern: re.Pattern[str]) -> str:
    """Return a pattern as scripts read it; they have ASCII words everywhere."""
    return re.sub(r"^\(\?a:(.*)\)$", r"\1", pattern.pattern)
