"""The index: every finding of `where` by name.

Built from the registry, the entries, tables and parsed source, without importing NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from byhand.book.entries.contract import ByStem
from byhand.book.finding.absent import ABSENT
from byhand.book.finding.equations import of_equations
from byhand.book.finding.finding import Finding
from byhand.book.finding.places import PLACES
from byhand.book.finding.reading import guides, lessons
from byhand.book.finding.settings import SETTINGS


def all_findings() -> dict[str, Finding]:
    """Return all findings by name; among equally good ones the earlier comes first."""
    return {**findings(), **_others(tuple(of_equations().values()))}


@lru_cache(maxsize=4)
def _others(equations: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.name: finding for finding in (*SETTINGS, *guides(), *lessons(), *lacking(equations))}


def lacking(equations: Iterable[Finding]) -> Iterator[Finding]:
    """Yield what the model lacks, without the names of equations that it has by now."""
    there = {name.casefold() for equation in equations for name in (equation.name, *equation.asked)}
    for finding in ABSENT:
        yield replace(finding, asked=tuple(name for name in finding.asked if name.casefold() not in there))


def findings() -> dict[str, Finding]:
    """Return the findings that point at code: equations, as data flows, and places."""
    return _findings(tuple(of_equations().values()))


@lru_cache(maxsize=4)
def _findings(found: tuple[Finding, ...]) -> dict[str, Finding]:
    return ByStem({finding.name: finding for finding in (*found, *PLACES)})
