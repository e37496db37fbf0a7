"""The words of a question or a phrase as tokens, in both languages: stems, Chinese characters and pairs of them.

What means the same becomes the same token: full-width letters, traditional characters, endings, synonyms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import pairwise

IN_QUESTIONS = (
    "a an the of in is are it its to and or for with by on at as from where what why how does do did we i my me you "
    "can could should would will need be been there that this these those they which when who has have am if then so "
    "just only also about into out please tell show explain mean means find code implement implemented "
    "implementation compute computed equation formula s t not no get got make use used using work works want like"
)
STOP = frozenset(IN_QUESTIONS.split())
FILLER = re.compile(
    "为什么|为何|什么是|是什么|怎么办|怎么算|怎么做|怎么样?|怎样|如何|请问|在哪里|在哪儿|哪里|在哪|多少|有什么用|什么|"
    "作用|需要|可以|能不能|一下|有没有|代码|实现|公式|计算|意思|应该|支持|我们|我|想|要|是|的|了|吗|呢|把|被|与|和|在|"
    "用|这个|那个|哪个"
)
ENDING = re.compile(
    "(?<=[a-z]{3})(?:ization|isation|izing|ising|ized|ised|ize|ise|ations?|ators?|ated?|ating|ings?|ers?|ors?|ied|"
    "ed|es|s|e|ly|y)$"
)
WORD = re.compile(r"[a-z]+|\d+|[\u4e00-\u9fff]+|[α-ω∞]")
WIDE = re.compile("[\uff00-\uffef\U0001d400-\U0001d7ff]+")  # from Chinese keyboards, and formulas copied from a PDF
HUMP = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
LONGEST = 4  # characters of a Chinese word that has synonyms


def stem(word: str) -> str:
    """Return a Latin word without its ending: trained, training and trainer are one."""
    return ENDING.sub("", word)


def wide(text: str) -> str:
    """Return text with plain letters for full-width ones; NFKC of all of it would turn x² into x2."""
    return WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


class Language:
    """What the tables say about words: simplified characters, regional words, synonyms."""

    def __init__(self, simplified: str, regional: Mapping[str, str], synonyms: Mapping[str, str]) -> None:
        self._simplified = str.maketrans(dict(zip(simplified[::2], simplified[1::2], strict=True)))
        self._regional, self._synonyms = dict(regional), dict(synonyms)
        self._words = re.compile("|".join(sorted(regional, key=len, reverse=True)) or "$^")

    def plain(self, text: str) -> str:
        """Return text with plain letters and simplified characters."""
        text = wide(text)
        if text.isascii():
            return text
        return self._words.sub(lambda word: self._regional[word[0]], text.translate(self._simplified))

    def key(self, text: str) -> str:
        """Return all letters and digits together: what two spellings of a name have in common."""
        return "".join(WORD.findall(self.plain(text).lower()))

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text once each, those of its meanings behind them."""
        text = HUMP.sub(" ", self.plain(text)).lower()
        found, meant = list[str](), list[str]()
        for word in WORD.findall(text if text.isascii() else FILLER.sub(" ", text)):
            if not word.isascii():
                found += [*word, *map("".join, pairwise(word))]
                meant += [word[i : i + n] for i in range(len(word)) for n in range(2, LONGEST + 1)]
            elif word not in STOP and not (len(word) == 1 and word.isdigit()):
                found.append(stem(word))
        return list(dict.fromkeys([*found, *(self._synonyms[t] for t in (*found, *meant) if t in self._synonyms)]))
