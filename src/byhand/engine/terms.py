"""One element's arithmetic as a small tree of labelled numbers.

A `Term` is a number read from an array, a constant, or an operation on other terms. Its value is worked from its
parts in Python's float64, so a tree that names the right numbers adds up to the element it explains, and a tree
that does not is caught by the tests. `explain`, the worked pages and the explorer all print these trees.
"""

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Index = tuple[int, ...]

NOTHING = 1e-12  # of the largest part of a sum; a smaller sum is rounding residue
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": lambda v: math.exp(v) if v < 709 else math.inf,
    "log": math.log,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "erf": math.erf,
    "cos": math.cos,
    "sin": math.sin,
    "square": lambda v: v * v,
    "positive": lambda v: v if v > 0 else 0.0,
    "negative": lambda v: -v,
}


def drawn(numbers: Sequence[float]) -> float:
    """Return the id that u draws with probabilities: the first whose running sum is above u times the whole sum."""
    u, *p = numbers
    sums = list(itertools.accumulate(p))
    return float(bisect.bisect_right(sums, min(u * sums[-1], math.nextafter(sums[-1], 0.0))))


OPERATIONS: dict[str, Callable[[list[float]], float]] = {
    "draw": drawn,
    "argmax": lambda v: float(v.index(max(v))),
    "sum": math.fsum,
    "product": math.prod,
    "max": max,
    "ratio": lambda v: 0.0 if v[0] == v[1] == 0.0 else v[0] / v[1],
}


@dataclass(frozen=True, slots=True)
class Term:
    """A number with a label: an input's element (`source`), a constant, or made from `parts` by `op`.

    `shared` counts the last axes along which all elements have it in common: 1 for the mean of a row.
    """

    label: str
    value: float
    op: str = ""
    parts: tuple["Term", ...] = ()
    source: tuple[int, Index] | None = None
    shared: int = 0

    def as_json(self, inputs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the tree, ready for JSON; `inputs` describes each input, by number, for the leaves read from it.

        A part used several times is written out once, with an `id`; its other places hold a `ref` to it.
        """
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
                plain |= {"op": term.op, "parts": [tree(part) for part in term.parts]}
                written[id(term)] = plain
            return plain

        return tree(self)


def number(value: Any, label: str = "") -> Term:
    """Return a constant of the equation, such as 0.5 or 1/sqrt(D)."""
    return Term(label, float(value))


def named(name: str, index: Index) -> str:
    """Return an element as people write it: `x[0,2]`, or the bare name of a number without axes."""
    return f"{name}[{','.join(map(str, index))}]" if index else name


def element(inputs: tuple[Any, ...], which: int, index: Index, name: str) -> Term:
    """Return the element `index` of the input number `which`, labelled like `x[0,2]`."""
    return Term(named(name, index), float(inputs[which][index]), source=(which, index))


def elements(arrays: tuple[Any, ...], index: Index, *names: str) -> tuple[Term, ...]:
    """Return the element `index` of the first arrays, one for each name."""
    return tuple(element(arrays, which, index, name) for which, name in enumerate(names))


def operate(op: str, values: list[float]) -> float:
    """Return the value of an operation on these values."""
    return OPERATIONS[op](values) if op in OPERATIONS else FUNCTIONS[op](*values)


def made(op: str, parts: Iterable[Term], label: str = "") -> Term:
    """Return an operation on the parts."""
    parts = tuple(parts)
    return Term(label, operate(op, [part.value for part in parts]), op, parts)


def total(parts: Iterable[Term], label: str = "") -> Term:
    """Return the sum of the parts."""
    return made("sum", parts, label)


def product(parts: Iterable[Term], label: str = "") -> Term:
    """Return the product of the parts."""
    return made("product", parts, label)


def shares(parts: Iterable["Term | tuple[Term, Term]"]) -> Term:
    """Return a sum of cotangents, or of cotangents times slopes; a cotangent of zero adds nothing and is left out."""
    pairs = (part if isinstance(part, tuple) else (part,) for part in parts)
    return total(product(pair) if len(pair) > 1 else pair[0] for pair in pairs if pair[0].value)


def places(shape: Sequence[int]) -> Iterator[Index]:
    """Yield every index of a shape, the last axis running fastest."""
    return itertools.product(*map(range, shape))


def ratio(numerator: Term, denominator: Term, label: str = "") -> Term:
    """Return numerator / denominator; 0 if both are 0, as for the softmax of a fully masked row."""
    return made("ratio", (numerator, denominator), label)


def function(name: str, argument: Term, label: str = "") -> Term:
    """Return one of `FUNCTIONS` applied to the argument."""
    return made(name, (argument,), label)


def largest(parts: Iterable[Term], label: str = "") -> Term:
    """Return the largest of the parts."""
    return made("max", parts, label)


def addends(term: Term) -> list[Term]:
    """Return the addends of a term: the parts of a sum, also of one in a numerator or among factors.

    Any other term is its only addend.
    """
    if term.op == "sum":
        return list(term.parts)
    if term.op == "ratio" and term.parts[0].op == "sum" and term.parts[1].value:
        divisor = term.parts[1]
        return [Term("", part.value / divisor.value, "ratio", (part, divisor)) for part in term.parts[0].parts]
    sums = [k for k, part in enumerate(term.parts) if part.op == "sum" and not part.label]
    if term.op == "product" and len(sums) == 1:
        before, after = term.parts[: sums[0]], term.parts[sums[0] + 1 :]
        return [product((*before, part, *after)) for part in term.parts[sums[0]].parts]
    return [term]


def labelled(term: Term) -> list[Term]:
    """Return the labelled parts below a term, the innermost first, each once."""
    found: dict[tuple[str, float], Term] = {}
    for part in below(term):
        if part is not term and part.parts and part.label:
            found.setdefault((part.label, part.value), part)
    return list(found.values())


def moved(term: Term, by: int) -> Term:
    """Return a term whose inputs are numbered `by` higher."""
    done: dict[int, Term] = {}
    for part in below(term):
        which = part.source and (part.source[0] + by, part.source[1])
        done[id(part)] = replace(part, source=which, parts=tuple(done[id(inner)] for inner in part.parts))
    return done[id(term)]


def leaves(term: Term) -> list[Term]:
    """Return the numbers of a term in the order of writing, each once."""
    return [part for part in below(term) if not part.parts]


def below(term: Term) -> list[Term]:
    """Return a term and all its parts, inner ones first, each once."""
    order: list[Term] = []
    seen: set[int] = set()

    def visit(part: Term) -> None:
        if id(part) not in seen:
            seen.add(id(part))
            for inner in part.parts:
                visit(inner)
            order.append(part)

    visit(term)
    return order


def of_row(term: Term) -> Term:
    """Mark a term as common to a whole row."""
    return replace(term, shared=1)


def settled(term: Term) -> Term:
    """Snap a term to 0 if its value is only the rounding residue of parts that cancel."""
    return replace(term, value=0.0) if abs(term.value) < NOTHING * size(term) else term


def size(term: Term) -> float:
    """Return how large a term's parts are before they cancel."""
    if not term.parts:
        return abs(term.value)
    sizes = [size(part) for part in term.parts]
    match term.op:
        case "sum":
            return max(sizes)
        case "product":
            return math.prod(sizes)
        case "ratio":
            below = abs(term.parts[1].value)
            return sizes[0] / below if below else 0.0
        case "negative":
            return sizes[0]
        case _:
            return abs(term.value)
