"""Shapes in a question, `(B, T, C) @ (C, V) -> (B, T, V)`, as shapes of equations, whatever their letters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from byhand.book.finding.finding import Finding

SHAPE = re.compile(r"(?<!\w)[(\[]((?:[^()\[\]]|\([^()]*\))*)[)\]]")
SIDES = re.compile(r"->|→|=>|⇒|\\to\b|\\rightarrow|\bto\b|\binto\b|变成|变为|得到|到|转成")
TIMES = re.compile(r"@|×|乘|\btimes\b|\bmatmul\b|[)\]] ?[x*] ?[(\[]")
SIZE = re.compile(r"\.\.\.|[A-Za-z]\w*|\d+")
PRODUCT = re.compile(r"[\w\s*/+×·()]+|-1")
LETTERS = {
    "batch": "B", "batch_size": "B", "L": "T", "seq": "T", "seq_len": "T", "block_size": "T", "t": "T", "S": "T",
    "n_embd": "C", "d_model": "C", "E": "C", "d": "C", "dim": "C", "hidden": "C", "hidden_size": "C", "nh": "H",
    "n_head": "H", "h": "H", "heads": "H", "num_heads": "H", "hs": "D", "dh": "D", "d_k": "D", "d_head": "D",
    "head_dim": "D", "head_size": "D", "vocab": "V", "vocab_size": "V", "d_ff": "F", "b": "B",
}  # fmt: skip
BOTH_SIDES, ONE_SIDE, MADE = 1.2, 0.75, 0.1  # what a match counts, without or with the letters: that of a result
UNUSED = 0.01  # and how much less for each input, which the question may not have
SAME = 0.5  # and how much more with all letters alike

Shape = tuple[str, ...]


def by_shapes(query: str, findings: Iterator[Finding]) -> Iterator[tuple[str, float]]:
    """Yield the equations that turn such shapes into such, or that have or make the one shape of the question."""
    sides = [
        [shape for found in SHAPE.findall(side) if "," in found and (shape := _shape(found))]
        for side in SIDES.split(query)
    ]
    sides = [side for side in sides if side]
    sizes = sum(len(shape) for side in sides for shape in side)
    if "\\" in query or len(sides) not in (1, 2) or len(sides[0]) > 3 or sizes < 2:
        return
    times = TIMES.search(query)
    for finding in findings:
        inputs = [_shapes(symbol.shape.en) for symbol in finding.symbols[:-1]]
        if times:  # one side of a product may be written transposed
            inputs = [[*own, *((*shape[:-2], *shape[:-3:-1]) for shape in own if len(shape) > 2)] for own in inputs]
        result = _shapes(finding.symbols[-1].shape.en)
        if len(sides) == 2 or len(sides[0]) > 1:
            made = sides[1][:1] if len(sides) == 2 else [(*sides[0][0][:-1], sides[0][1][-1])] if times else []
            chosen = ((*some, result) if made else some for some in permutations(inputs, len(sides[0])))
            best = max((_alike([*sides[0], *made], own) for own in chosen), default=0.0)
            if best:
                yield finding.name, BOTH_SIDES + SAME * best - UNUSED * len(inputs)
        else:
            alike = ((_alike(sides[0], [own]), own is result) for own in (*inputs, result))
            best, is_made = max(alike)
            if best > SAME:
                yield finding.name, ONE_SIDE + SAME * best + MADE * is_made


def _shapes(text: str) -> list[Shape]:
    """Return the shapes that a symbol may have, as in `() or (B,)`."""
    return [_shape(found) for found in SHAPE.findall(text)]


def _shape(text: str) -> Shape:
    """Return the sizes between brackets; () if they are something else."""
    sizes = [size.strip() for size in text.rstrip(", ").split(",")]
    return tuple(sizes) if all(SIZE.fullmatch(size) or PRODUCT.fullmatch(size) for size in sizes) else ()


def _alike(asked: Sequence[Shape], own: Sequence[list[Shape]]) -> float:
    """Return the share of sizes with the same letter if all shapes fit with one meaning of each letter; else 0."""
    meant: dict[str, Shape] = {}
    fits, same, count = True, 0.0, 0
    for shape, shapes in zip(asked, own, strict=True):
        letters = next((letters for letters in shapes if _fits(shape, letters, meant)), None)
        fits = fits and letters is not None
        count += len(shape)
        same += sum(_letter(a) == _letter(b) for a, b in zip(reversed(shape), reversed(letters or ()), strict=False))
    return (same + 0.1) / (count + 0.1) if fits else 0.0


def _fits(shape: Shape, letters: Shape, meant: dict[str, Shape]) -> bool:
    """Return whether a shape can be written in these letters, and note what they mean then."""
    meaning = dict(meant)
    if letters[:1] == ("...",):
        rest = len(shape) - len(letters) + 1
        if rest < 0 or meaning.setdefault("...", shape[:rest]) != shape[:rest]:
            return False
        shape, letters = shape[rest:], letters[1:]
    if len(shape) != len(letters):
        return False
    for size, letter in zip(shape, letters, strict=True):
        if meaning.setdefault(letter, (size,)) != (size,):
            return False
    meant.update(meaning)
    return True


def _letter(size: str) -> str:
    return LETTERS.get(size, size if SIZE.fullmatch(size) else "product")
