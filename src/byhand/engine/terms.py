"""One element's arithmetic as a small tree of labelled numbers.

A `Term` is a number read from an array, a constant, or an operation on other terms. Its value is computed from its
parts in Python's float64, so a tree that names the right numbers gives the element it explains, and tests catch one
that does not. `explain`, the worked pages and the explorer all print these trees.

Long rows (`over`) make their parts on demand; walks that need no single part use the row's outline.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

from byhand.engine.arrays import namespace
from byhand.engine.context import sums_are_whole
from byhand.engine.operations import is_array, operate
from byhand.engine.rows import Joined, Row, joined, mapped, outlines, ranked, values

Index = tuple[int, ...]

NOTHING = 1e-12  # relative to a sum's largest part; a smaller sum is rounding residue
WHOLE = 400_000  # numbers of the largest tree that JSON holds whole
LARGEST = 8  # parts of each long row in the JSON of larger trees


@dataclass(frozen=True, slots=True)
class Term:
    """A number with a label: an input's element (`source`), a constant, or `op` applied to `parts`.

    `common_axes` is the number of trailing axes along which it is broadcast: 1 for a row's mean.
    """

    label: str
    value: float
    op: str = ""
    parts: Sequence["Term"] = ()
    source: tuple[int, Index] | None = None
    common_axes: int = 0

    def as_json(self, inputs: Sequence[Mapping[str, Any]], most: int | None = None) -> dict[str, Any]:
        """Return the tree, ready for JSON; `inputs` describes each input, by number, for the leaves read from it.

        A shared part is written once, with an `id`; elsewhere a `ref` points to it. With `most`, a sum or a maximum
        has only so many parts, largest first, and a `rest`: the `count` of the others and its `value` over them. A
        tree of more than WHOLE numbers is cut so to the LARGEST parts of each long row.
        """
        shown = most or (None if is_whole(self) else LARGEST)
        written: dict[int, dict[str, Any]] = {}
        ids = itertools.count(1)

        def tree(term: Term) -> dict[str, Any]:
            if id(term) in written:
                first = written[id(term)]
                first["id"] = first.get("id") or next(ids)
                return {"ref": first["id"], "label": term.label, "value": term.value}
            plain: dict[str, Any] = {"label": term.label, "value": term.value}
            if term.source:
                which, index = term.source
                plain["source"] = {**inputs[which], "index": list(index)}
            if term.op:
                folds = term.op in ("sum", "max")
                long = isinstance(term.parts, Row | Joined) or (most and folds)
                if shown and long and len(term.parts) > shown:
                    parts = ranked(term.parts)
                    rest = {"value": operate(term.op, values(parts[shown:]))} if folds else {}
                    plain |= {"op": term.op, "parts": [tree(part) for part in parts[:shown]]}
                    plain["rest"] = {"count": len(parts) - shown, **rest}
                else:
                    plain |= {"op": term.op, "parts": [tree(part) for part in term.parts]}
                written[id(term)] = plain
            return plain

        return tree(self)


def number(value: Any, label: str = "") -> Term:
    """Return a constant of the equation, such as 0.5 or 1/sqrt(D)."""
    return Term(label, float(value))


def element_name(name: str, index: Index) -> str:
    """Return an element's name: `x[0,2]`, or the bare name of a scalar."""
    return f"{name}[{','.join(map(str, index))}]" if index else name


def element(inputs: tuple[Any, ...], which: int, index: Index, name: str) -> Term:
    """Return the element `index` of input number `which`, labelled like `x[0,2]`; for several, their outline."""
    value = inputs[which][index]
    if is_array(value):
        return Term(name, value.astype(float), source=(which, index))
    return Term(element_name(name, index), float(value), source=(which, index))


def elements(arrays: tuple[Any, ...], index: Index, *names: str) -> tuple[Term, ...]:
    """Return the element `index` of each of the first arrays, one for each name."""
    return tuple(element(arrays, which, index, name) for which, name in enumerate(names))


def made(op: str, parts: Iterable[Term], label: str = "") -> Term:
    """Return an operation on the parts."""
    parts = parts if isinstance(parts, Row | Joined) else tuple(parts)
    return Term(label, operate(op, values(parts)), op, parts)


def total(parts: Iterable[Term], label: str = "") -> Term:
    """Return the sum of the parts."""
    return made("sum", parts, label)


def product(parts: Iterable[Term], label: str = "") -> Term:
    """Return the product of the parts."""
    return made("product", parts, label)


def cotangent_sum(parts: Iterable["Term | tuple[Term, Term]"]) -> Term:
    """Return a sum of cotangents, or of cotangents times slopes, without zero cotangents."""

    def share(part: Any) -> Term:
        return product(part) if isinstance(part, tuple) else part

    def cotangent(part: Any) -> Any:
        return (part[0] if isinstance(part, tuple) else part).value

    def kept(parts: Iterable[Any]) -> Sequence[Term]:
        if isinstance(parts, Joined):
            return joined(*map(kept, parts.rows))
        if isinstance(parts, Row):
            return (parts if sums_are_whole() else parts.where(cotangent(parts.outline))).mapped(share)
        return tuple(share(part) for part in parts if sums_are_whole() or cotangent(part))

    return total(kept(parts))


def indices(shape: Sequence[int]) -> Iterator[Index]:
    """Yield every index of a shape in row-major order."""
    return itertools.product(*map(range, shape))


def ratio(numerator: Term, denominator: Term, label: str = "") -> Term:
    """Return numerator / denominator; NaN if both are 0."""
    return made("ratio", (numerator, denominator), label)


def function(name: str, argument: Term, label: str = "") -> Term:
    """Return one of `FUNCTIONS` applied to the argument."""
    return made(name, (argument,), label)


def largest(parts: Iterable[Term], label: str = "") -> Term:
    """Return the largest of the parts."""
    return made("max", parts, label)


def addends(term: Term) -> Sequence[Term]:
    """Return the addends of a term: the parts of a sum, even in a numerator or among factors.

    Any other term is its only addend.
    """
    if term.op == "sum":
        return term.parts
    if term.op == "ratio" and term.parts[0].op == "sum" and term.parts[1].value:
        divisor = term.parts[1]
        return mapped(
            lambda part: Term("", part.value / divisor.value, "ratio", (part, divisor)), term.parts[0].parts
        )
    if term.op != "product":
        return (term,)
    sums = [k for k, part in enumerate(term.parts) if part.op == "sum" and not part.label]
    if len(sums) == 1:
        before, after = term.parts[: sums[0]], term.parts[sums[0] + 1 :]
        return mapped(lambda part: product((*before, part, *after)), term.parts[sums[0]].parts)
    return (term,)


def labelled(term: Term) -> list[Term]:
    """Return the distinct labelled parts below a term, innermost first."""
    found: dict[tuple[str, float], Term] = {}
    for part in below(term, outlines):
        if part is not term and part.parts and part.label:
            found.setdefault((part.label, part.value), part)
    return list(found.values())


def moved(term: Term, by: int) -> Term:
    """Return the term with `by` added to its input numbers."""
    done: dict[int, tuple[Term, Term]] = {}

    def change(part: Term) -> Term:
        if id(part) not in done:
            which = part.source and (part.source[0] + by, part.source[1])
            done[id(part)] = part, replace(part, source=which, parts=mapped(change, part.parts))
        return done[id(part)][1]

    return change(term)


def leaves(term: Term, of: Callable[[Sequence[Term]], Iterable[Term]] = iter) -> Iterator[Term]:
    """Yield a term's distinct leaves in the order of writing; `of` as in `below`."""
    return (part for part in below(term, of) if not part.parts)


def below(term: Term, of: Callable[[Sequence[Term]], Iterable[Term]] = iter) -> Iterator[Term]:
    """Yield a term and its distinct parts, inner ones first; with `of=outlines` one outline per long row."""
    seen: dict[int, Term] = {}

    def visit(part: Term) -> Iterator[Term]:
        if id(part) not in seen:
            seen[id(part)] = part
            for inner in of(part.parts):
                yield from visit(inner)
            yield part

    return visit(term)


def is_whole(term: Term) -> bool:
    """Return whether JSON holds the whole tree."""
    return sum(getattr(leaf.value, "size", 1) for leaf in leaves(term, outlines)) <= WHOLE


def of_row(term: Term) -> Term:
    """Mark a term as broadcast along its row."""
    return replace(term, common_axes=1)


def settled(term: Term) -> Term:
    """Snap a term to 0 if its value is only the rounding residue of parts that cancel."""
    return replace(term, value=0.0) if abs(term.value) < NOTHING * size(term) else term


def size(term: Term) -> Any:
    """Return the magnitude of a term's parts before they cancel; for an outline, at each place."""
    if not term.parts:
        return abs(term.value)
    sizes = [size(part) for part in outlines(term.parts)]
    match term.op:
        case "sum" if is_array(term.value):
            return reduce(namespace(term.value).maximum, sizes)
        case "sum":
            return max(each.max() if is_array(each) else each for each in sizes)
        case "product":
            return prod(sizes)
        case "ratio":
            below = abs(term.parts[1].value)
            return sizes[0] / (below + (below == 0)) * (below != 0)  # 0 over 0
        case "negative":
            return sizes[0]
        case _:
            return abs(term.value)
