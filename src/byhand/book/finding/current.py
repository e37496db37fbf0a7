"""The index that holds for this process: that of the package, or a fresh one if others have brought equations."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

from byhand.book.finding.stored import Index, stored


def current() -> Index:
    """Return the index of the package, or a fresh one if this process has other equations than it."""
    contract = sys.modules.get("byhand.book.entries.contract")
    if contract is None:
        return stored()
    known = {answer["name"] for answer in stored().answers if answer.get("kind", "equation") == "equation"}
    return stored() if known == contract.ENTRIES.keys() else _fresh(tuple(contract.ENTRIES.values()))


@lru_cache(maxsize=2)
def _fresh(entries: tuple[Any, ...]) -> Index:
    from byhand.book.finding.index import content

    return Index(content())
