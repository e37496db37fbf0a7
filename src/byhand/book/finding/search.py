"""Search: from a reader's words, formula or name to the answers, best first.

Words lead to an answer in two ways, each word weighed by how few answers it leads to. The best phrase of an answer
counts by what it shares with the question (Dice's coefficient). And all phrases and sentences of an answer count
together, by the share of the question's words that they have; a word counts more the more of them have it (BM25 with
k1 = 1 and b = 0: the length of a text is no fault, since what is asked more has more text). So a topic is found by
its words, and by a question that uses none of them. The name of a technique that the model lacks counts by how much
of what is said with it is about such techniques. A formula is compared with the formulas of equations and places.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from byhand.book.finding import formula
from byhand.book.finding.current import current
from byhand.book.finding.finding import Finding
from byhand.book.finding.names import ASSIGNED, OWNER, spellings
from byhand.book.finding.shapes import by_shapes
from byhand.book.finding.spelling import spelt
from byhand.book.finding.stored import Index
from byhand.book.finding.words import HAN, key
from byhand.errors import ByhandError

LONGEST = 1000  # characters of a query: a derivative in LaTeX has 528
FOUND = 0.28  # the lowest score that counts as an answer
SHORTEST_NAME = 3  # letters of a name among signs
LONGEST_NAME = 80  # characters that are compared with names
SPREAD = 0.45  # an answer that is worse than the best by more is noise
BEST = 0.5  # how much the best phrase of an answer counts,
ALL = 0.75  # and all that leads to it
LONGEST_TERM = 4  # words of the name of a technique that the model lacks
CHINESE_TERM = range(3, 8)  # its characters
SIMILAR = 1.2  # how much the likeness of a formula counts
FORMULA = re.compile(r"[\\^_=<>≤/+×√Σ∑∂·←$(@\[]|\s-\s")
PRODUCT = re.compile(r"\s*[ABKPQSVWXY](\s+[ABKPQSVWXY])+\s*")  # P V is a formula, an MLP is not
DERIVATIVE = re.compile(r"d ?(\w+) d ?(\w+)")  # in tokens, which have no fraction bar
ASPECT = re.compile(
    r"\b(?:shapes?|dimensions?|derivatives?|gradients?|jacobian|backward|respect)\b|的?(?:形状|维度|导数|梯度|求导|偏导)"
)
ACRONYM = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z]*[A-Z](?![A-Za-z])")
SYMBOL = re.compile(r"\s*[A-Z]_(\{[\sa-z\d,:+-]*\}|[a-z]{1,2})\s*")  # S_{b,i,j}: one letter with running indices


@dataclass(frozen=True, slots=True)
class Match:
    """An answer and its score."""

    score: float
    finding: Finding


def search(query: str) -> list[Match]:
    """Return the answers to the query, best first; none if nothing is near enough.

    Raises ByhandError for a query that is longer than any formula, and for an equation that has no entry.
    """
    if len(query) > LONGEST:
        raise ByhandError(f"the query has {len(query):,} characters. Ask in at most {LONGEST:,}.")
    index, given = current(), query.strip()
    _require_entry(given, index)
    best: dict[int, float] = defaultdict(float)
    said = spelt(index, index.said(given))
    for number, score in (*_by_name(index, given, said), *_by_formula(index, given), *_by_words(index, said)):
        best[number] = max(best[number], score)
    top = max(best.values(), default=0.0)
    found = [(score, number) for number, score in best.items() if score >= max(FOUND, top - SPREAD)]
    found.sort(key=lambda one: (-one[0], one[1]))
    return [Match(min(score, 1.0), index.finding(number)) for score, number in found]


def nearest(query: str, n: int = 5) -> list[str]:
    """Return the names and terms that are most like a query without an answer."""
    index = current()
    names = dict.fromkeys(row[3] for row in index.rows if 0 < len(row[3]) < LONGEST_NAME)
    asked = " ".join(index.said(query[:LONGEST])) or index.han.plain(query[:LONGEST])
    return get_close_matches(asked[:LONGEST_NAME], names, n=n, cutoff=0.3)


def _require_entry(given: str, index: Index) -> None:
    """Raise ByhandError for an equation of this process that has no entry."""
    equations = sys.modules.get("byhand.engine.equation")
    if equations is not None and given in equations.registry and given not in index.names:
        from byhand.book.finding.index import findings

        findings()[given]


def _by_name(index: Index, given: str, said: list[str]) -> Iterator[tuple[int, float]]:
    """A name, a title, a question to the letter."""
    if given in index.names:
        yield index.names[given], 3.0
    symbols = FORMULA.search(given)  # whose letters alone are not its name: a @ b, x + a
    words = " ".join(said)
    told = () if symbols else (([words], 1.8), ([ASPECT.sub("", words)], 1.7))  # shape of X: what is told about X
    for texts, score in (([given], 2.0), *spellings(index.han.wide(given)), *told):
        keys = (key(index.han.plain(text)) for text in texts)
        led = (index.by_key.get(letters, ()) for letters in keys if not symbols or len(letters) >= SHORTEST_NAME)
        rows = next(filter(None, led), ())
        if score != OWNER or _all_lack(index, rows):
            yield from ((number, score * weight) for number, weight, *_ in rows)
    for letters in _terms(given, said):
        rows = index.by_key.get(letters, ())
        if rows and _all_lack(index, rows):
            yield rows[0][0], index.lacking(letters)


def _all_lack(index: Index, rows: Iterable[list[Any]]) -> bool:
    return all(index.is_absent(number) for number, *_ in rows)


def _terms(given: str, said: list[str]) -> Iterator[str]:
    """Yield what may be the name of a technique in a question: words side by side, and parts of Chinese ones."""
    yield from (word.lower() for word in ACRONYM.findall(given))
    if not FORMULA.search(given):
        yield from ("".join(said[at : at + n]) for n in range(1, LONGEST_TERM + 1) for at in range(len(said) - n + 1))
    for word in filter(HAN.match, said):
        yield from (word[at : at + n] for n in CHINESE_TERM for at in range(len(word) - n + 1))


def _by_words(index: Index, said: list[str]) -> Iterator[tuple[int, float]]:
    """Words in common with an answer's best phrase, and with all that leads to it."""
    weights = {token: index.rarity(token) for token in index.tokens(" ".join(said))}
    whole = sum(weights.values())
    common, shares, best = (defaultdict[int, float](float) for _ in range(3))
    for token, weight in weights.items():
        for number in index.postings.get(token, ()):
            common[number] += weight
        for answer, often in index.told(token).items():
            shares[answer] += weight * often / (often + 1) / whole
    for number, shared in common.items():
        answer, important, *_ = index.rows[number]
        best[answer] = max(best[answer], important * 2 * shared / (whole + index.mass(number)))
    for answer, share in shares.items():
        yield answer, BEST * best[answer] + ALL * share


def _by_formula(index: Index, query: str) -> Iterator[tuple[int, float]]:
    query = index.han.wide(query)
    asked = formula.tokens(query)
    if not asked or ASSIGNED.fullmatch(query):
        return
    if FORMULA.search(query) or PRODUCT.fullmatch(query):
        compact = formula.compact(query)
        for name, written, other in index.formulas:
            score = 2.5 if written == compact else SIMILAR * formula.similarity(tuple(asked), other)
            if score > 0.6:
                yield index.names[name], score
    for name, score in by_shapes(query, _with_symbols(index)):
        yield index.names[name], score
    for name, score in (*_by_symbol(index, query, asked), *_by_derivative(index, query, asked)):
        yield index.names[name], 2 * score


def _by_symbol(index: Index, query: str, asked: list[str]) -> Iterator[tuple[str, float]]:
    """One symbol alone.

    A Greek letter or infinity: first equations with such an input or setting, then formulas that contain it. A letter
    with indices, such as S_{b,i,j}: first the equation that makes it, then those that read it.
    """
    if SYMBOL.fullmatch(query):
        letter = query.strip()[0]
        for finding in _with_symbols(index):
            if letter in finding.symbols[-1].latex.split(", "):
                yield finding.name, 0.95
            elif letter in (s.latex for s in finding.symbols):
                yield finding.name, 0.8
        return
    letters = [token for token in asked if token.isalpha()]
    if len(letters) != 1 or letters[0] not in formula.LETTERS or re.search("[\u4e00-\u9fff]", query):
        return
    for finding in _with_symbols(index):
        own = (*(s.latex for s in finding.symbols), *finding.settings.values())
        for texts, score in ((own, 0.9), ((finding.latex,), 0.85)):
            if any(letters[0] in formula.tokens(text) for text in texts):
                yield finding.name, score
                break
        else:
            if any(letters[0] in tokens for name, _, tokens in index.formulas if name == finding.name):
                yield finding.name, 0.7


def _by_derivative(index: Index, query: str, asked: list[str]) -> Iterator[tuple[str, float]]:
    r"""`∂L/∂z` or `\frac{dL}{dz}`: first the equations that read z, whose derivatives give it, then its maker."""
    of = DERIVATIVE.fullmatch(" ".join(asked))
    if not of or not re.search(r"/|\\[td]?frac", query) or of[1] in formula.OPERATIONS:
        return
    for finding in _with_symbols(index):
        own = [{symbol.name, "".join(formula.tokens(symbol.latex))} for symbol in finding.symbols]
        reads, makes = (any(of[2] in names for names in part) for part in (own[:-1], own[-1:]))
        if reads or makes:
            yield finding.name, (0.99 if reads else 0.85) + 0.01 * (of[1] in own[-1])


def _with_symbols(index: Index) -> Iterator[Finding]:
    return (index.finding(number) for number, answer in enumerate(index.answers) if "symbols" in answer)
