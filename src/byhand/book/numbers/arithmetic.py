"""Terms as text: a tree of labelled numbers becomes the line that a person would write on paper.

Labelled parts (mean, var, m, u) are written as their value and defined on separate lines. A long sum is written as
its value inside other arithmetic, and by its first and last parts if it stands alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from byhand.engine.operations import operate
from byhand.engine.terms import Term

SHOWN, MOST = 6, 12  # significant digits of a number, and of one whose row would not add up otherwise
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


def decimal(value: float, digits: int = SHOWN) -> str:
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


def read(text: str, otherwise: float) -> float:
    """Return the value of a printed number; `otherwise` for a closed form, which is exact."""
    try:
        return float(text.replace("−", "-").replace("∞", "inf"))
    except ValueError:
        return otherwise


def agrees(worked: float, value: float, digits: int = SHOWN) -> bool:
    """Return whether a number rounds to a value as printed, in the last digit; for 0 to six decimals."""
    if not (math.isfinite(worked) and math.isfinite(value)):
        return worked == value or math.isnan(value)
    shown = read(decimal(value, digits), value)
    smaller = min(abs(worked), abs(shown)) if shown else 1  # 0.999999 is not 1
    place = math.floor(math.log10(smaller)) - digits + 1 if shown and smaller else -SHOWN
    return abs(worked - shown) <= 0.500001 * 10.0**place


def written(term: Term, leaf: Callable[[int], Leaf], value: float) -> tuple[str, int]:
    """Return the arithmetic of a term in numbers that give its printed value, and the value's digits.

    The numbers have as many digits as that takes; where they cancel too far, the value has fewer. `leaf` takes the
    number of digits.
    """
    for digits in range(SHOWN, MOST + 1):
        if agrees(_reworked_as_printed(term, leaf(digits)), value):
            return expression(term, leaf(digits)), SHOWN
    worked = _reworked_as_printed(term, leaf(MOST))
    right = next((digits for digits in range(SHOWN - 1, 1, -1) if agrees(worked, value, digits)), 1)
    return expression(term, leaf(MOST)), right


def _reworked_as_printed(term: Term, leaf: Leaf, top: bool = True) -> float:
    """Return the value that a reader gets from the text of `expression`."""
    if not term.parts or (not top and (term.label or _is_long(term))):
        return read(leaf(replace(term, parts=()) if term.parts else term), term.value)
    return operate(term.op, [_reworked_as_printed(part, leaf, False) for part in term.parts])


def begun(term: Term) -> Term:
    """Return a term with its first operation on bare numbers done, unless that is all of it."""
    for k, part in enumerate(term.parts):
        if part.parts and not part.label and not _is_long(part) and not _is_signed(part):
            inner = begun(part)
            done = Term("", part.value) if inner is part else inner
            return replace(term, parts=(*term.parts[:k], done, *term.parts[k + 1 :]))
    return term


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


def simplified(term: Term, whole: bool = False) -> Term:
    """Return a term without factors 1 and, in a sum of products, without products with a factor 0 and a bias of 0.

    A factor −1 leaves only its sign. A sum of plain numbers keeps its zeros: `0.1 + 0` is the addition that the
    step is about. With `whole`, only constants are dropped; 1s and 0s read from an array stay.
    """
    parts = tuple(simplified(part, whole) if part.parts and not part.label else part for part in term.parts)
    if term.op == "product" and not any(_is_given(part, 0) for part in parts):
        parts = tuple(part for part in parts if not _is_given(part, 1) or (whole and part.source)) or parts[:1]
        minus = next((k for k, part in enumerate(parts) if _is_given(part, -1) and not (whole and part.source)), -1)
        if minus >= 0 and len(parts) > 1:
            rest = replace(term, label="", value=-term.value, parts=(*parts[:minus], *parts[minus + 1 :]))
            return Term(term.label, term.value, "negative", (simplified(rest, whole),))
        if len(parts) == 2 and parts[1].op == "ratio" and _is_given(parts[1].parts[0], 1) and not whole:
            return Term(term.label, term.value, "ratio", (parts[0], parts[1].parts[1]))  # x / d for x times 1 / d
    elif term.op == "sum" and not whole:
        alone = not any(part.op == "product" for part in term.parts)
        parts = tuple(part for part in parts if not _is_nothing(part, alone)) or (Term("", 0.0),)
    if len(parts) == 1 and term.op in ("sum", "product"):
        return parts[0]
    return replace(term, parts=parts)


def _is_given(part: Term, value: float) -> bool:
    return not part.parts and part.value == value


def _is_nothing(part: Term, alone: bool) -> bool:
    """Return whether a part of a sum is a product with a factor 0, or 0 itself unless all parts stand `alone`."""
    inside = part.parts[0] if part.op == "negative" else part
    return (_is_given(part, 0) and not alone) or (
        inside.op == "product"
        and any(_is_given(factor.parts[0] if factor.op == "ratio" else factor, 0) for factor in inside.parts)
    )


def _is_long(term: Term) -> bool:
    return term.op in ("sum", "max") and len(term.parts) > LONG


def _is_signed(term: Term) -> bool:
    """Return whether a term is a number with a minus sign, which takes no operation."""
    return term.op == "negative" and (not term.parts[0].parts or bool(term.parts[0].label))


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
    bare = tight in (POWER, ATOM) or (tight == PRODUCT and not text.startswith("−"))
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
