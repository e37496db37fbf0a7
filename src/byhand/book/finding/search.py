"""Search: from a reader's words, formula or name to the answers, best first.

Every way of matching gives a score from 0 to 1, and an answer keeps its best: an exact name, title, symbol, concept
or seed name; a name in other programs; a phrase or words of one; a near miss (difflib); a similar formula; a Greek
letter in a formula.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

from byhand.book.finding import formula
from byhand.book.finding.finding import Finding
from byhand.book.finding.index import all_findings, findings
from byhand.book.finding.phrases import phrases, plain_words, vocabulary, words
from byhand.engine.equation import registry
from byhand.errors import ByhandError

LONGEST = 1000  # characters of a query: a derivative in LaTeX has 528
MOST_WORDS = 50  # of a query; half of them must stand in one phrase, and every phrase has fewer
FOUND = 0.45  # the lowest score that counts as an answer
LONGEST_NAME = 80  # characters that are compared with names
SPREAD = 0.23  # an answer that is worse than the best by more is noise
FORMULA = re.compile(r"[\\^_=<>≤/+×√Σ∑∂·←$(@\[]|\s-\s")
PRODUCT = re.compile(r"\s*[ABKPQSVWXY](\s+[ABKPQSVWXY])+\s*")  # P V is a formula, an MLP is not
WIDE = re.compile("[\uff00-\uffef\U0001d400-\U0001d7ff]+")  # from Chinese keyboards, and formulas copied from a PDF
DERIVATIVE = re.compile(r"d ?(\w+) d ?(\w+)")  # in tokens, which have no fraction bar
PARAMETER = re.compile(  # prefixes and suffixes of a parameter's name in other programs
    r"^(transformer |model )?((blocks|layers|h) \d+ )?|(?<=[a-z0-9]) (weight|bias)$"
)
SYMBOL = re.compile(r"\s*[A-Z]_(\{[\sa-z\d,:+-]*\}|[a-z]{1,2})\s*")  # S_{b,i,j}: one letter with running indices


@dataclass(frozen=True, slots=True)
class Match:
    """An answer and its score, from 0 to 1."""

    score: float
    finding: Finding


def search(query: str) -> list[Match]:
    """Return the answers to the query, best first; none if nothing is near enough.

    Raises ByhandError for a query that is longer than any formula, and for an equation that has no entry.
    """
    if len(query) > LONGEST:
        raise ByhandError(f"the query has {len(query):,} characters. Ask in at most {LONGEST:,}.")
    query = _narrow(query)
    known, given = all_findings(), query.strip()
    if given in registry and given not in known:
        return [Match(1.0, findings()[given])]  # which says that it has no entry
    best = {given: 1.0} if given in known else {}
    for name, score in (*_by_words(query), *_by_formula(query), *_by_symbol(query), *_by_derivative(query)):
        best[name] = max(best.get(name, 0.0), score)
    found = [Match(score, known[name]) for name, score in best.items() if score >= FOUND]
    top = max((m.score for m in found), default=0.0)
    order = {name: i for i, name in enumerate(known)}
    found = [m for m in found if m.score >= top - SPREAD]
    literal = [m.finding.name for m in found if given not in known and given in _to_the_letter(m.finding)]
    # literal names come first: nn.GELU of PyTorch is not nn::gelu of the original program
    return sorted(found, key=lambda m: (m.finding.name not in literal, -m.score, order[m.finding.name]))


def _to_the_letter(finding: Finding) -> tuple[str, ...]:
    """Return the names that count exactly as they are written: its title, and those in other programs."""
    return (finding.title.en, finding.title.zh, *finding.asked)


def nearest(query: str, n: int = 5) -> list[str]:
    """Return the names and terms that are most like a query without an answer."""
    names = list(dict.fromkeys(p.text for p in phrases()))
    return get_close_matches(plain_words(_narrow(query[:LONGEST]))[:LONGEST_NAME], names, n=n, cutoff=0.3)


def _by_words(query: str) -> Iterator[tuple[str, float]]:
    asked = plain_words(query)
    bare = PARAMETER.sub("", asked) if "." in query else asked
    respelled = " ".join(map(_respelled, bare.split()[:MOST_WORDS]))
    for text, share in {respelled: 0.97, bare: 0.99, asked: 1.0}.items():
        yield from _like(text, share)


def _like(asked: str, share: float) -> Iterator[tuple[str, float]]:
    """Compare with every phrase: the same, one within the other, nearly the same, or words in common."""
    content = words(asked)
    if not content:
        return
    joined, told = asked.replace(" ", ""), " ".join(content)
    begins = re.compile("|".join(re.escape(word[:4]) for word in content)).search  # else no word is in common
    near = SequenceMatcher(b=asked)  # b is slow to change, a is not
    misspelt = not vocabulary().issuperset(asked.split())
    for phrase in phrases():
        text, finding, weight = phrase
        if text[0] == joined[0] and text.replace(" ", "") == joined:
            yield finding, share * weight
            continue
        score = 0.0
        if _within(asked, text) or _within(text, asked):
            shorter, longer = sorted((len(asked), len(text)))
            score = 0.6 + 0.3 * shorter / longer
        if told != asked and (_within(told, text) or _within(text, told)):
            shorter, longer = sorted((len(told), len(text)))
            score = max(score, 0.58 + 0.3 * shorter / longer)
        if misspelt and min(len(asked), len(text)) >= 0.375 * (len(asked) + len(text)):  # else the ratio is lower
            near.set_seq1(text)
            if near.quick_ratio() >= 0.75 and near.ratio() >= 0.75:
                score = max(score, 0.95 * near.ratio())
        if len(text) == len(asked) > 2 and asked[0] > "\u4dff" and sum(map(str.__ne__, asked, text)) == 1:
            score = max(score, 0.7)  # one wrong character
        if len(content) <= MOST_WORDS and begins(text):
            others = words(text) or text.split()
            common = _shared(content, others)
            if content == others:
                score = 0.95
            elif common and common >= 0.5 * len(content):
                score = max(score, 0.4 + 0.25 * common / len(content) + 0.2 * common / len(others))
        if score:
            yield finding, share * weight * min(score, 0.95)


def _respelled(word: str) -> str:
    """Return the known word nearest to an unknown one of five letters or more, else the word itself."""
    if not (4 < len(word) < LONGEST_NAME and word.isascii()) or word in vocabulary():
        return word
    return next(iter(get_close_matches(word, sorted(vocabulary()), n=1, cutoff=0.87)), word)


def _shared(words: list[str], others: list[str]) -> int:
    """Count the common words, ignoring endings (score, scores; embed, embedding)."""
    return sum(any(_same_stem(word, other) for other in others) for word in words)


def _same_stem(a: str, b: str) -> bool:
    if a == b:
        return len(a) > 1 or not a.isascii()
    shorter, longer = (a, b) if len(a) < len(b) else (b, a)
    return len(shorter) > 3 and len(longer) - len(shorter) <= 3 and longer.startswith(shorter)


def _within(part: str, whole: str) -> bool:
    if part not in whole:
        return False
    if re.search(r"[\u4e00-\u9fff]", part):
        return len(part) >= 2
    return len(part) >= 3 and re.search(rf"(?<![a-z0-9]){re.escape(part)}(?![a-z0-9])", whole) is not None


@lru_cache(maxsize=4)
def _formulas(known: tuple[Finding, ...]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    found = []
    for finding in known:
        name = finding.name
        own = [
            part
            for text in (finding.latex, finding.latex_derivative)
            for part in re.split(r",\s*\\quad|\\quad", text)
        ]
        own += [
            part for text in (finding.plain, finding.plain_derivative) for part in re.split(r",\s{2,}|;\s|\n", text)
        ]
        own += [s.latex for s in finding.symbols if "_" in s.latex]
        for text in (finding.latex, finding.latex_derivative, *own, *finding.notations):
            parts = tuple(formula.tokens(text))
            if parts:
                found.append((name, _compact(text), parts))
    return tuple(found)


def _by_formula(query: str) -> Iterator[tuple[str, float]]:
    asked = formula.tokens(query)
    if not asked or not (FORMULA.search(query) or PRODUCT.fullmatch(query)):
        return
    seen, compact = dict[str, float](), _compact(query)
    for name, written, other in _formulas(tuple(findings().values())):
        score = 1.0 if written == compact else 0.97 * formula.similarity(asked, other)
        seen[name] = max(seen.get(name, 0.0), score)
    yield from seen.items()


def _by_symbol(query: str) -> Iterator[tuple[str, float]]:
    """One symbol alone.

    A Greek letter or infinity: first equations with such an input or setting, then formulas that contain it. A letter
    with indices, such as S_{b,i,j}: first the equation that makes it, then those that read it.
    """
    if SYMBOL.fullmatch(query):
        letter = query.strip()[0]
        for name, finding in findings().items():
            if finding.symbols and letter in finding.symbols[-1].latex.split(", "):
                yield name, 0.95
            elif letter in (s.latex for s in finding.symbols):
                yield name, 0.8
        return
    asked = [token for token in formula.tokens(query) if token.isalpha()]
    if len(asked) != 1 or asked[0] not in formula.LETTERS:
        return
    for name, finding in findings().items():
        own = (*(s.latex for s in finding.symbols), *finding.settings.values())
        for texts, score in ((own, 0.9), ((finding.latex,), 0.85), (finding.notations, 0.7)):
            if any(asked[0] in formula.tokens(text) for text in texts):
                yield name, score
                break


def _by_derivative(query: str) -> Iterator[tuple[str, float]]:
    r"""`∂L/∂z` or `\frac{dL}{dz}`: first the equations that read z, whose derivatives give it, then its maker."""
    asked = DERIVATIVE.fullmatch(" ".join(formula.tokens(query)))
    if not asked or not re.search(r"/|\\[td]?frac", query):
        return
    for name, finding in findings().items():
        own = [{symbol.name, "".join(formula.tokens(symbol.latex))} for symbol in finding.symbols]
        reads, makes = (any(asked[2] in names for names in part) for part in (own[:-1], own[-1:]))
        if reads or makes:
            yield name, (0.99 if reads else 0.85) + 0.01 * (asked[1] in own[-1])


def _narrow(query: str) -> str:
    """Replace full-width and mathematical letters by plain ones; NFKC of the whole query would turn x² into x2."""
    return WIDE.sub(lambda wide: unicodedata.normalize("NFKC", wide[0]), query)


def _compact(text: str) -> str:
    return re.sub(r"[\s{}$]", "", text)
