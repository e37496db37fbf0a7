"""The index: every answer of `where` by name.

Built from the registry, the entries, tables and parsed source, without importing NumPy.
"""

from __future__ import annotations

from functools import cache, lru_cache

from byhand.book.entries.contract import ByStem
from byhand.book.finding.absent import ABSENT
from byhand.book.finding.equations import of_equations
from byhand.book.finding.finding import Finding
from byhand.book.finding.places import PLACES
from byhand.book.finding.reading import guides, lessons
from byhand.book.finding.settings import SETTINGS


def answers() -> dict[str, Finding]:
    """Return all answers by name; among equally good ones the earlier comes first."""
    return {**listings(), **_others()}


@cache
def _others() -> dict[str, Finding]:
    return {finding.name: finding for finding in (*SETTINGS, *guides(), *lessons(), *ABSENT)}


def listings() -> dict[str, Finding]:
    """Return equations, as data flows, and places by name."""
    return _listings(tuple(of_equations().values()))


@lru_cache(maxsize=4)
def _listings(found: tuple[Finding, ...]) -> dict[str, Finding]:
    return ByStem({finding.name: finding for finding in (*found, *PLACES)})
