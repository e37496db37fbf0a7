"""The phrases that lead to each answer, and the score of an exact hit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from byhand.book.finding.finding import Finding
from byhand.book.finding.flow import concepts
from byhand.book.finding.index import all_findings
from byhand.engine.equation import Composite, registry

IN_QUESTIONS = (
    "a an the of in is are it its to and or for with by on at as from where what why how does do we i my you can "
    "need be there that this these equation"
)
OF_ANYTHING = (
    "formula derivative gradient code implement implemented implementation compute computed computes work works"
)
STOP, GENERAL = frozenset(IN_QUESTIONS.split()), frozenset(OF_ANYTHING.split())
FILLER = re.compile(
    "为什么|为何|什么是|是什么|怎么算|怎么样?|怎样|如何|请问|哪里|在哪儿?|多少|有什么用|有什么|的作用|需要|可以|一下|一个|"
    "代码|实现|公式|推导|计算|我|想|要|是|的|了|吗|呢|把|与|和|用"
)  # Chinese question words, general words, particles
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]+")
TITLES = {"setting": 0.96, "guide": 0.88, "lesson": 0.87}  # an equation with the same words comes first


class Phrase(NamedTuple):
    """Words that lead to an answer, and the score of an exact hit."""

    text: str
    finding: str
    weight: float


@lru_cache(maxsize=4096)
def words(text: str) -> list[str]:
    """Return the distinctive words of plain text, once each."""
    parts = (text if text.isascii() else FILLER.sub(" ", text)).split()
    found = [word for word in parts if word not in STOP and not word.isdigit()]
    return list(dict.fromkeys([word for word in found if word not in GENERAL] or found))


def phrases() -> tuple[Phrase, ...]:
    """Return all phrases of all answers."""
    return _phrases_of(tuple(all_findings().values()))


def vocabulary() -> frozenset[str]:
    """Return the Latin words of all phrases."""
    return _vocabulary(phrases())


@lru_cache(maxsize=4)
def _vocabulary(known: tuple[Phrase, ...]) -> frozenset[str]:
    return frozenset(word for phrase in known for word in phrase.text.split() if word.isascii())


@lru_cache(maxsize=4)
def _phrases_of(known: tuple[Finding, ...]) -> tuple[Phrase, ...]:
    found: dict[tuple[str, str], float] = {}

    def add(text: str, finding: str, weight: float) -> None:
        key = (plain_words(text), finding)
        if key[0]:
            found[key] = max(found.get(key, 0.0), weight)

    for finding in known:
        name = finding.name
        add(name, name, TITLES.get(finding.kind, 1.0))
        for title in (finding.title.en, finding.title.zh):
            for part in (title, re.split(r" ?[（(]", title)[0]):
                add(part, name, TITLES.get(finding.kind, 0.99))
        for asked in finding.asked:
            add(asked, name, 0.965)
        for seed in finding.seed_names:
            share = 1.0 if _is_whole(seed, name) else 0.97
            add(seed, name, share)
            add(seed.rpartition("::")[2], name, share - 0.01)
        for symbol in finding.symbols:
            if len(symbol.name) > 2:
                add(symbol.name, name, 0.95)
            add(symbol.meaning.en, name, 0.8)
            add(symbol.meaning.zh, name, 0.8)
        for use in finding.uses:
            add(use.result, name, 0.93)
            if use.result and use.scope:
                add(f"{use.scope}.{use.result}", name, 0.94)
    for concept in concepts():
        for rank, name in enumerate(concept.entries):
            for text, weight in ((concept.en, 0.99), (concept.zh, 0.99), *((a, 0.98) for a in concept.also)):
                add(text, name, weight - 0.03 * rank)
    return tuple(Phrase(text, finding, weight) for (text, finding), weight in found.items())


def _is_whole(seed: str, name: str) -> bool:
    """Return whether a seed name that several answers share means this one: the composite, or the same word."""
    last = seed.rpartition("::")[2].lower()
    return name in last or isinstance(registry.get(name), Composite)


def plain_words(text: str) -> str:
    """Return the words of a query or phrase in lower case, without `::`, `_`, `-`, `.`; ReLU² becomes relu2."""
    return " ".join(WORD.findall(re.sub("(?<=[a-z]{2})²", "2", text.lower())))
