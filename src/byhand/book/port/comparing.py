"""Compares arrays with those of a trace: exact, close or off, where, by how much, and what that looks like."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from byhand.book.port import model, recording
from byhand.book.port.recording import Recorded, Recording
from byhand.book.port.theirs import Counterpart, Theirs, as_ours, matched
from byhand.book.words.language import COMMA, Words, preferred
from byhand.engine.terms import Index, element_name
from byhand.errors import DataError

CLOSE = {8: 1e-9, 4: 1e-4, 2: 2e-2}  # by the bytes of a number: what a right array may differ by
SMALLEST = 1e-6  # differences are relative to the largest number of ours, or to this
LISTED = 3  # places that are not one range
AXES = {1: "element", 2: "row column", 3: "text position column", 4: "text head position column"}
CHINESE = {"element": "元素", "row": "行", "column": "列", "text": "文本", "position": "位置", "head": "头"}
SAID = {
    "exact": Words("{name}: exact", "{name}：完全相同"),
    "close": Words(
        "{name}: close, within {off:.1e} of the largest number", "{name}：接近，相差不超过最大数的 {off:.1e} 倍"
    ),
    "off": Words(
        "{place}: {theirs} instead of {ours}, where it differs most (by {off:.1e} of the largest number)",
        "{place}：得到 {theirs}，应为 {ours}，此处相差最大（为最大数的 {off:.1e} 倍）",
    ),
    "shape": Words("{name}: its shape is {theirs}, not {ours}", "{name}：形状为 {theirs}，应为 {ours}"),
    "transposed": Words("It is transposed.", "转置了。"),
    "sign": Words("Its sign is wrong.", "符号反了。"),
    "factor": Words("It is {factor:.9g} times what it should be.", "它是正确值的 {factor:.9g} 倍。"),
    "heads": Words("Its heads are in the order {order}.", "各头的顺序为 {order}。"),
    "split": Words("Heads and their columns are exchanged.", "头与头内各列的次序弄反了。"),
    "zeros": Words("It is all zeros.", "全为 0。"),
    "infinite": Words(
        "{place}: {theirs}, which is not finite, instead of {ours}", "{place}：得到 {theirs}，不是有限数，应为 {ours}"
    ),
    "count": Words("Not finite: {n} of {all} numbers.", "非有限数：{all} 个中有 {n} 个。"),
    "where": Words("Only in {places}.", "只出现在：{places}。"),
}


@dataclass(frozen=True)
class Checked:
    """What a comparison found; true if the array is right. As text it is a sentence.

    state  exact, close, off, or shape if the shapes differ
    off    the largest difference, relative to the largest number of ours; infinite for NaN or another shape
    index  where it is
    like   a transposition, a factor, a sign, the order of heads, or the only places that differ, in words
    """

    name: str
    state: str
    off: float = 0.0
    index: Index = ()
    ours: Any = 0.0
    theirs: Any = 0.0
    like: tuple[Words, ...] = ()

    def __bool__(self) -> bool:
        return self.state in ("exact", "close")

    def said(self, lang: str) -> str:
        """Return it as text."""
        place = element_name(self.name, self.index)
        ours, theirs = self.ours, self.theirs
        if self.state == "off":  # with all digits if nine do not tell them apart
            digits = 9 if f"{ours:.9g}" != f"{theirs:.9g}" else 17
            ours, theirs = f"{ours:.{digits}g}", f"{theirs:.{digits}g}"
        values = {"name": self.name, "off": self.off, "place": place, "ours": ours, "theirs": theirs}
        key = "infinite" if self.state == "off" and np.isinf(self.off) else self.state
        return "\n".join([SAID[key].said(lang, **values), *(words.said(lang) for words in self.like)])

    def __str__(self) -> str:
        return self.said(preferred())

    __repr__ = __str__


def check(name: str, mine: Any, of: str | Path = "gpt") -> Checked:
    """Compare an array with the one of this name in a trace; print the answer, or use it as a condition.

    name  as in the trace's index: blocks.0.attn.scores, grad/wte, new/lm_head.w
    of    a model of the guide "Port a GPT", or the folder that `byhand trace` wrote

    Raises DataError if the trace has no such array, or mine is not one of numbers.
    """
    whole = of_page(str(of)) if str(of) in model.CONFIGS else recording.read(Path(of))
    ours = whole.named(name)
    numbers = _numbers(mine)
    return compared(ours, Theirs(numbers.shape, lambda: numbers), Counterpart(name), whole)


def _numbers(mine: Any) -> np.ndarray:
    try:
        array = np.asarray(mine.detach().cpu() if hasattr(mine, "detach") else mine)
    except (ValueError, TypeError, OverflowError, RuntimeError):
        array = np.empty(0, object)
    if array.dtype.kind not in "fiub":
        kind = getattr(mine, "dtype", array.dtype)
        raise DataError(
            f"this is no array of numbers for NumPy, but of {kind}. Convert it: float32, int64 and bool serve."
        )
    return array


@cache
def of_page(name: str, dtype: str = "float64") -> Recording:
    """Return the trace of one of the page's models."""
    return recording.recorded(model.questions(name, dtype), name)


def compared(
    ours: Recorded, array: Theirs, counterpart: Counterpart, whole: Recording, close: float = 0.0
) -> Checked:
    """Return what differs between an array of ours and one of theirs.

    close  the largest relative difference that counts as none; by their type if 0
    """
    own = np.asarray(counterpart.part(ours.array), np.float64)
    if math.prod(array.shape) != own.size:  # it may be too large to be read
        return Checked(ours.name, "shape", np.inf, (), own.shape, array.shape)
    found = as_ours(array, counterpart, own.shape)
    close = close or CLOSE.get(found.dtype.itemsize if found.dtype.kind == "f" else 8, 1e-9)
    scale = max(float(np.nanmax(np.abs(ours.array), initial=0.0)), SMALLEST)
    mine = np.asarray(found, np.float64)

    def off(other: np.ndarray) -> float:
        return float(_differences(own, other).max(initial=0.0)) / scale if own.shape == other.shape else np.inf

    width = whole.config.head_width
    if own.shape != mine.shape:
        like = tuple(_likeness(own, mine, width, lambda other: off(other) <= close))
        return Checked(ours.name, "shape", np.inf, (), own.shape, mine.shape, like)
    largest = off(mine)
    if largest <= close:
        return Checked(ours.name, "close" if largest else "exact", largest)
    index = tuple(int(i) for i in np.unravel_index(int(_differences(own, mine).argmax()), own.shape))
    columns = counterpart.part(np.arange(*ours.array.shape[-1:])) if index else np.empty(0)
    like = tuple(_likeness(own, mine, width, lambda other: off(other) <= close))
    like = like or tuple(_places(own, mine, close * scale, columns))
    numbers = float(own[index]), float(mine[index])
    if index:
        index = (*index[:-1], int(columns[index[-1]]))
    return Checked(ours.name, "off", largest, index, *numbers, like)


def _differences(own: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """Return the absolute differences: 0 where ours is not compared, infinite where theirs is no number."""
    with np.errstate(all="ignore"):
        found = np.where(np.isnan(own), 0.0, np.abs(mine - own))
    return np.where(np.isnan(found), np.inf, found)


def _likeness(
    own: np.ndarray, mine: np.ndarray, width: int, is_close: Callable[[np.ndarray], bool]
) -> Iterator[Words]:
    """Yield the one rearrangement or factor of ours that gives theirs, if there is one."""
    if mine.ndim > 1:
        for turned in (mine.T, mine.swapaxes(-1, -2)):
            if is_close(turned):
                yield SAID["transposed"]
                return
    if own.shape != mine.shape or not np.isfinite(mine).any():
        return
    if not mine.any():
        yield SAID["zeros"]
        return
    used = ~np.isnan(own) & np.isfinite(mine)
    with np.errstate(all="ignore"):
        square = float(np.square(own[used]).sum())
        factor = float((own[used] * mine[used]).sum()) / square if square else 0.0
    sign = abs(factor + 1) < 1e-6
    # One number is always a multiple of another, and rounding is no factor.
    if (sign or used.sum() > 1) and abs(factor - 1) > 1e-6 and factor and is_close(mine / factor):
        yield SAID["sign"] if sign else _words("factor", factor=factor)
        return
    if own.ndim and own.shape[-1] % width == 0 and own.shape[-1] > width:
        heads = own.shape[-1] // width
        if is_close(mine.reshape(*own.shape[:-1], width, heads).swapaxes(-1, -2).reshape(own.shape)):
            yield SAID["split"]
            return
        yield from _order(own.reshape(-1, heads, width).swapaxes(0, 1), mine.reshape(-1, heads, width).swapaxes(0, 1))
    elif own.ndim == 4:
        yield from _order(own.swapaxes(0, 1), mine.swapaxes(0, 1))


def _order(own: np.ndarray, mine: np.ndarray) -> Iterator[Words]:
    """Yield the order of heads, the first axis, if theirs are ours in another one."""
    norms = [np.nan_to_num(np.abs(each)).sum() for each in own]
    order = [int(np.argmin([_differences(a, b).sum() for a in own])) for b in mine]
    near = all(
        _differences(own[i], b).sum() <= 1e-6 * (norms[i] + SMALLEST) for i, b in zip(order, mine, strict=True)
    )
    if near and order != sorted(order) == list(range(len(own))):
        yield _words("heads", order=", ".join(map(str, order)))


def _places(own: np.ndarray, mine: np.ndarray, within: float, columns: np.ndarray) -> Iterator[Words]:
    """Yield how many numbers are not finite, and the only places that are not, or that differ.

    columns  what the last axis' places are of ours
    """
    wrong = ~np.isfinite(mine) & ~np.isnan(own)
    if wrong.any():
        yield _words("count", n=int(wrong.sum()), all=wrong.size)
    else:
        wrong = _differences(own, mine) > within
    found = list[Words]()
    for axis, name in enumerate(AXES.get(wrong.ndim, "").split()):
        at = np.flatnonzero(wrong.any(tuple(i for i in range(wrong.ndim) if i != axis)))
        if len(at) == wrong.shape[axis]:
            continue
        at = np.sort(columns[at]) if axis == wrong.ndim - 1 else at
        whole = at[-1] - at[0] == len(at) - 1
        if whole or len(at) <= LISTED:
            said = f"{at[0]}–{at[-1]}" if whole and len(at) > 1 else ", ".join(map(str, at))
            found.append(Words(f"{name}{'s' * (len(at) > 1)} {said}", f"{CHINESE[name]} {said}"))
    if found:
        yield Words(
            *(SAID["where"].said(x, places=COMMA.said(x).join(w.said(x) for w in found)) for x in ("en", "zh"))
        )


def _words(key: str, **values: Any) -> Words:
    return Words(*(SAID[key].said(lang, **values) for lang in ("en", "zh")))


@dataclass(frozen=True)
class Difference:
    """What `byhand diff` found.

    table      whose names theirs are
    checked    what was compared, in the order of the computation
    unknown    their names that the table lacks
    unchecked  what the first wrong array was made from and theirs do not have
    """

    table: str
    checked: Sequence[Checked]
    unknown: Sequence[str]
    unchecked: Sequence[str]

    @property
    def wrong(self) -> list[Checked]:
        """What differs."""
        return [each for each in self.checked if not each]


def difference(ours: Recording, theirs: dict[str, Theirs], close: float = 0.0) -> Difference:
    """Return the comparison of all arrays whose names are known; DataError if none is."""
    table, found = matched(theirs, ours)
    place = {each.name: i for i, each in enumerate(ours.arrays)}
    found = sorted(found, key=lambda row: place[row[2].ours])
    checked = [compared(ours.by_name[c.ours], array, c, ours, close) for _, array, c in found]
    known, names = {c.ours for *_, c in found}, {name for name, *_ in found}
    first = next((each for each in checked if not each), None)
    inputs = ours.by_name[first.name].inputs if first is not None else ()
    unchecked = [name for name in inputs if name in ours.by_name and name not in known]
    return Difference(table, checked, [n for n in theirs if n not in names and f"{n}.0" not in names], unchecked)
