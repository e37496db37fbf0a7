"""The table of `byhand port`: the mistakes of the catalogue, planted one by one and two by two, and what they lead to.

`byhand/book/port/table.json` keeps the numbers of each. Only mistakes whose code is new are computed again, with their
pairs, or all if the right numbers are no longer those of the table; all pairs take minutes, so tests compute none. To
compute them in any case, delete it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from byhand.book.port import model
from byhand.book.port.naming import TABLE
from byhand.book.practice.catalogue import Planted, catalogue
from byhand.book.practice.planting import planted
from byhand.errors import ByhandError

LARGEST = 1e6  # of a pair's numbers: larger ones say nothing


def numbers_with(*mistakes: Planted, of: Callable[[], Any] = model.numbers) -> Any:
    """Return what the model of the page gives with these mistakes; its functions warn of what is not finite."""
    with planted(*mistakes), np.errstate(all="ignore"):
        return of()


def digest(mistake: Planted) -> str:
    """Return a digest of a mistake's code."""
    return hashlib.sha256(repr((mistake.where, mistake.old, mistake.new)).encode()).hexdigest()[:8]


def is_right(table: dict[str, Any]) -> bool:
    """Return whether the table's right numbers are those of the models, as far as is told in a moment."""
    return all(
        name in model.CONFIGS and np.allclose(row, model.all_numbers(name), rtol=1e-7, atol=0)
        for name, row in table["right"].items()
    )


def text(compute: bool = True) -> str:
    """Return the text of `table.json`: a line for each mistake, and for its pairs with those behind it.

    Words come from the catalogue, numbers from the table there is; what it lacks is computed, or without `compute`
    the text is empty.
    """
    mistakes, table = catalogue(), {"right": {}, "mistakes": [], "pairs": []}
    if TABLE.is_file() and is_right(found := json.loads(TABLE.read_text(encoding="utf-8"))):
        table = found
    right, pairs = table["right"], table["pairs"]
    there = {of: moved for *_, of, moved in table["mistakes"]}
    if [*there] != [*map(digest, mistakes)] or right.keys() != model.CONFIGS.keys():
        if not compute:
            return ""
        known = _pairs_there(table)
        for mistake in mistakes:
            wanted = model.CONFIGS.keys() - (right if digest(mistake) in there else ())
            moved = there.setdefault(digest(mistake), {})
            moved |= {name: row for name in model.CONFIGS if name in wanted and (row := _moved(mistake, name))}
        right = {name: right.get(name) or _kept(model.all_numbers(name)) for name in model.CONFIGS}
        pairs = _pairs([m for m in mistakes if "gpt" in there[digest(m)]], known)
    rows = [[m.en, m.zh, _place(m.where), digest(m), there[digest(m)]] for m in mistakes]
    said = {"right": json.dumps(right), "mistakes": _lines(rows), "pairs": _lines(pairs)}
    return "{\n" + ",\n".join(f'"{name}": {value}' for name, value in said.items()) + "\n}\n"


def _pairs_there(table: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the four numbers of each pair of the table, by the digests of both."""
    digests = [of for *_, of, moved in table["mistakes"] if "gpt" in moved]
    known: dict[tuple[str, str], Any] = {}
    for i, row in enumerate(table["pairs"]):
        numbers = np.frombuffer(base64.b64decode(row), dtype="<f4").reshape(-1, 4)
        known |= zip(((digests[i], other) for other in digests[i + 1 :]), numbers, strict=True)
    return known


def _moved(mistake: Planted, name: str) -> list[float | None]:
    """Return the numbers of one of the models with a mistake; none if it does not make it, or stops."""
    try:
        numbers = numbers_with(mistake, of=lambda: model.all_numbers(name))
    except (ValueError, ByhandError):  # heads that do not divide: a port would stop too
        return []
    right = model.all_numbers(name)
    return [] if np.allclose(numbers, right, rtol=1e-9, atol=0) else _kept(numbers)


def _lines(rows: Sequence[Any]) -> str:
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"


def _kept(numbers: Sequence[float]) -> list[float | None]:
    """Return nine digits of each number; None for one that is not finite."""
    return [float(f"{x:.9g}") if np.isfinite(x) else None for x in numbers]


def _place(where: str) -> str:
    """Return the function as its file in the package and its name."""
    stem, colon, name = where.partition(":")
    if colon:
        return f"{stem.removeprefix('byhand.').replace('.', '/')}.py:{name}"
    stem, _, half = where.partition(".")
    return f"equations/{stem}.py:{half}"


def _pairs(mistakes: Sequence[Planted], known: dict[tuple[str, str], Any]) -> list[str]:
    """Return for each mistake but the last four float32 for each pair with a later one, in base64.

    NaN if both change the same text, or if a number is not finite.
    """
    rows = []
    for i, one in enumerate(mistakes[:-1]):
        row: list[Any] = []
        for other in mistakes[i + 1 :]:
            numbers = known.get((digest(one), digest(other)), [np.nan] * 4)
            if (digest(one), digest(other)) not in known:
                with suppress(Exception):  # one mistake may take away what the other changes
                    numbers = numbers_with(one, other)
            row += [*numbers] if np.abs(numbers).max() < LARGEST else [np.nan] * 4
        rows.append(base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode())
    return rows
