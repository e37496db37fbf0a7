"""Two languages: the same words in English and in Chinese, and the one way to choose between them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

Language = Literal["en", "zh"]

IN_ARITHMETIC = {
    "byte": "字节", "bytes": "字节", "eps of LN": "LN 的 eps",
    "flat": "按内存顺序",
}  # fmt: skip
"""Chinese for names within arithmetic. Entries add the labels of their equations' terms."""


@dataclass(frozen=True)
class Words:
    """The same words in both languages."""

    en: str
    zh: str

    def said(self, lang: str, **values: Any) -> str:
        """Return them in `en` or `zh`, with the values inserted by `str.format`."""
        words = self.zh if lang == "zh" else self.en
        return words.format(**values) if values else words


@dataclass(frozen=True)
class Note(Words):
    """A remark, such as why a gradient is zero: a code and facts for programs, and words for people."""

    code: str = ""
    facts: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"code": self.code, **self.facts, "en": self.en, "zh": self.zh}


Said = str | Words  # arithmetic, of which only names are translated, or words in both languages

COLON, COMMA, SEMICOLON = Words(": ", "："), Words(", ", "、"), Words("; ", "；")
PAUSE = Words(", ", "，")  # between parts of a sentence, not of a list
PAGE = Words(".md", ".zh-CN.md")  # suffix of a page's file


def preferred(environment: Mapping[str, str] = os.environ) -> Language:
    """Return the language of the environment: that of the first of LC_ALL, LC_MESSAGES and LANG that is set."""
    locale = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if locale.lower().startswith("zh") else "en"


def say(text: Said, lang: str) -> str:
    """Return text in `en` or `zh`, with names within arithmetic, such as mean, translated too."""
    if isinstance(text, Words):
        return text.said(lang)
    return _names(tuple(IN_ARITHMETIC)).sub(lambda part: IN_ARITHMETIC[part[0]], text) if lang == "zh" else text


@lru_cache(maxsize=4)
def _names(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(names, key=len, reverse=True))})(?![\w.])")
