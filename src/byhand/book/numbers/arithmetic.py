"""Terms as text: a tree of labelled numbers becomes the line that a person would write on paper.

Labelled parts (mean, var, m, u) are written as their value and defined on separate lines. A long sum is written as
its value inside other arithmetic, and by its first and last parts if it stands alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from byhand.engine.operations import operate
from byhand.engine.terms import Term

LONG = 8  # a sum of more parts gets its own place
SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4  # precedence of a piece of text

Leaf = Callable[[Term], str]

_SKIPPED = Term("…", 0.0)  # the middle of a long sum


@dataclass(frozen=True, slots=True)
class Definition:
    """A labelled part: its arithmetic in numbers, and its term."""

    label: str
    expression: str
    term: Term


def decimal(value: float, digits: int = 6) -> str:
    """Return a number as people write it: six significant digits, no trailing zeros, a real minus sign."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−").replace("inf", "∞")


def number(term: Term) -> str:
    """Write a leaf as its number."""
    return decimal(term.value)


def letter(term: Term) -> str:
    """Write a leaf as its letter, or as its number if it has none."""
    return term.label or decimal(term.value)


def expression(term: Term, leaf: Leaf = number) -> str:
    """Return the arithmetic of a term on one line, its labelled parts and long sums as values."""
    return _write(term, leaf, top=True)[0]


def reworked(term: Term, given: Callable[[Term], float | None]) -> float:
    """Return a term's value with other numbers: `given` returns a part's new number, or None to keep the old one."""
    if not term.parts:
        value = given(term)
        return term.value if value is None else value

    def inner(part: Term) -> float:
        value = given(part) if part.parts and part.label else None
        return reworked(part, given) if value is None else value

    return operate(term.op, [inner(part) for part in term.parts])


def simplified(term: Term) -> Term:
    """Return a term without factors 1 and, in a sum of products, without products with a factor 0.

    A sum of plain numbers keeps its zeros: `0.1 + 0` is the addition that the step is about.
    """
    parts = tuple(simplified(part) if part.parts and not part.label else part for part in term.parts)
    if term.op == "product" and not any(_is_given(part, 0) for part in parts):
        parts = tuple(part for part in parts if not _is_given(part, 1)) or parts[:1]
        if len(parts) > 1 and parts[0] == Term("", -1.0):
            return Term(
                term.label,
                term.value,
                "negative",
                (simplified(replace(term, label="", value=-term.value, parts=parts[1:])),),
            )
    elif term.op == "sum":
        alone = not any(part.op == "product" for part in parts)
        parts = tuple(part for part in parts if not _is_nothing(part, alone)) or (Term("", 0.0),)
    return parts[0] if len(parts) == 1 and term.op in ("sum", "product") else replace(term, parts=parts)


def _is_given(part: Term, value: float) -> bool:
    return not part.parts and part.value == value


def _is_nothing(part: Term, alone: bool) -> bool:
    """Return whether a part of a sum is a product with a factor 0, or 0 itself unless all parts stand `alone`."""
    inside = part.parts[0] if part.op == "negative" else part
    return (_is_given(part, 0) and not alone) or (
        inside.op == "product" and any(_is_given(factor, 0) for factor in inside.parts)
    )


def _is_long(term: Term) -> bool:
    return term.op in ("sum", "max") and len(term.parts) > LONG


def _write(term: Term, leaf: Leaf, top: bool = False) -> tuple[str, int]:
    if not term.parts:
        return _tight(leaf(term))
    if not top and (term.label or _is_long(term)):
        return _tight(leaf(Term(term.label, term.value)))
    shown = term.parts if not _is_long(term) else (*term.parts[:2], _SKIPPED, term.parts[-1])
    parts = [("…", ATOM) if part is _SKIPPED else _write(part, leaf) for part in shown]
    return _OPERATIONS.get(term.op, _function)(term, parts)


def _tight(text: str) -> tuple[str, int]:
    """Return a number's text and its precedence: `1 + √2` is a sum, `−2` and `1/2` are products."""
    return text, SUM if " " in text else PRODUCT if text.startswith("−") or "/" in text else ATOM


def _sum(term: Term, parts: list[tuple[str, int]]) -> tuple[str, int]:
    text = ""
    for written, tight in parts:
        if not text:
            text = written
        elif written.startswith("−") and tight >= PRODUCT:
            text += f" − {written.removeprefix('−')}"
        else:
            text += f" + ({written})" if tight < PRODUCT and written.startswith("−") else f" + {written}"
    return text or "0", SUM if len(parts) > 1 else parts[0][1] if parts else ATOM


def _product(term: Term, parts: list[tuple[str, int]]) -> tuple[str, int]:
    written = [
        f"({text})" if tight < PRODUCT or (i and text.startswith("−")) else text
        for i, (text, tight) in enumerate(parts)
    ]
    return " × ".join(written), PRODUCT


def _ratio(term: Term, parts: list[tuple[str, int]]) -> tuple[str, int]:
    (above, tight_above), (below, tight_below) = parts
    above = f"({above})" if tight_above < PRODUCT else above
    below = f"({below})" if tight_below < POWER else below
    return f"{above} / {below}", PRODUCT


def _negative(term: Term, parts: list[tuple[str, int]]) -> tuple[str, int]:
    text, tight = parts[0]
    bare = tight == ATOM or (tight == PRODUCT and not text.startswith("−"))
    return f"−{text}" if bare else f"−({text})", PRODUCT


def _function(term: Term, parts: list[tuple[str, int]]) -> tuple[str, int]:
    inside = ", ".join(text for text, _ in parts)
    held = inside if parts[0][1] == ATOM else f"({inside})"
    match term.op:
        case "sqrt":
            return f"√{held}", ATOM
        case "square":
            return f"{held}²", POWER
        case "positive":
            return f"max({inside}, 0)", ATOM
        case "step":
            return f"[{inside} > 0]", ATOM
        case op:
            return f"{'ln' if op == 'log' else op}({inside})", ATOM


_OPERATIONS = {"sum": _sum, "product": _product, "ratio": _ratio, "negative": _negative}
