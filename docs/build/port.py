"""The table of `byhand port`: the mistakes of the catalogue, planted one by one and two by two, and what they lead to.

`byhand/book/port/table.json` keeps the numbers of each. Only what a changed mistake leads to is computed again, alone and
with each other one; a model whose right numbers changed, wholly: that takes minutes. Tests compute mistakes one by one.
To compute all in any case, delete it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
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


def text(compute: bool = True) -> str:
    """Return the text of `table.json`: a line for each mistake, and for its pairs with those behind it.

    Words come from the catalogue, numbers from the table there is; those that are stale are computed, or without
    `compute` the text is empty.
    """
    mistakes = catalogue()
    table = (
        json.loads(TABLE.read_text(encoding="utf-8"))
        if TABLE.is_file()
        else {"right": {}, "mistakes": [], "pairs": []}
    )
    right = {name: _kept(model.all_numbers(name)) for name in model.CONFIGS}
    same = [n for n, row in table["right"].items() if n in right and np.allclose(row, right[n], rtol=1e-7, atol=0)]
    right |= {name: table["right"][name] for name in same}
    kept = {of: moved for *_, moved, of in table["mistakes"]}
    if not compute and (len(same) < len(right) or not all(digest(m) in kept for m in mistakes)):
        return ""
    pairs = dict(_read(table)) if "gpt" in same else {}
    moved = []
    for mistake in mistakes:
        there = kept.get(digest(mistake))
        wanted = right if there is None else [name for name in right if name not in same]
        row = {name: there[name] for name in same if there and name in there}
        row |= {name: numbers for name in wanted if (numbers := _moved(mistake, name))}
        moved.append({name: row[name] for name in right if name in row})
    rows = [[m.en, m.zh, _place(m.where), row, digest(m)] for m, row in zip(mistakes, moved, strict=True)]
    said = {"right": json.dumps(right), "mistakes": _lines(rows)}
    said["pairs"] = _lines(_pairs([m for m, row in zip(mistakes, moved, strict=True) if "gpt" in row], pairs))
    return "{\n" + ",\n".join(f'"{name}": {value}' for name, value in said.items()) + "\n}\n"


def _read(table: dict[str, Any]) -> Iterator[tuple[tuple[str, str], list[float]]]:
    """Yield the digests of two mistakes of a table, and what both together lead to."""
    ofs = [of for *_, moved, of in table["mistakes"] if "gpt" in moved]
    for i, row in enumerate(table["pairs"]):
        numbers = np.frombuffer(base64.b64decode(row), "<f4").reshape(-1, 4)
        yield from (((ofs[i], of), four.tolist()) for of, four in zip(ofs[i + 1 :], numbers, strict=True))


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


def _pairs(mistakes: Sequence[Planted], kept: dict[tuple[str, str], list[float]]) -> list[str]:
    """Return for each mistake but the last four float32 for each pair with a later one, in base64.

    NaN if both change the same text, or if a number is not finite. `kept` are known numbers, by two digests.
    """
    rows = []
    for i, one in enumerate(mistakes[:-1]):
        row: list[float] = []
        for other in mistakes[i + 1 :]:
            if (of := (digest(one), digest(other))) in kept:
                row += kept[of]
                continue
            numbers = [np.nan] * 4
            with suppress(Exception):  # one mistake may take away what the other changes
                numbers = numbers_with(one, other)
            row += numbers if np.abs(numbers).max() < LARGEST else [np.nan] * 4
        rows.append(base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode())
    return rows
