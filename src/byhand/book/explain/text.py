"""An explanation as a page of text for the terminal, in English or Chinese."""

from __future__ import annotations

from collections.abc import Callable

from byhand.book.explain.explanation import BEFORE, Explanation
from byhand.book.numbers.arithmetic import decimal, expression, letter
from byhand.book.words.language import Words
from byhand.engine.terms import Term
from byhand.tracing.elements import Element

WORDS = {
    "terms": Words("terms, largest first", "各项，从大到小"),
    "rest": Words("the rest, {n} terms", "其余 {n} 项"),
    "sum": Words("sum", "合计"),
    "sources": Words("made from", "由这些数得到"),
    "more": Words("and {n} more", "另有 {n} 个"),
    "difference": Words("central difference: ", "中心差分："),
    "cancelled": Words("sum, up to rounding", "合计，不计舍入误差"),
}


Spell = Callable[[Explanation | Element], str]  # returns the text of an element's token, or ""


def text(explanation: Explanation, lang: str = "en", shown: int = 8, spell: Spell = lambda element: "") -> str:
    """Return the explanation and its children, each with `shown` terms and sources and the sum of the rest."""
    lines = _lines(explanation, lang, shown, spell)
    for child in explanation.children:
        lines += ["", *("  " + line if line else "" for line in text(child, lang, shown, spell).splitlines())]
    return "\n".join(lines)


def _lines(e: Explanation, lang: str, shown: int, spell: Spell) -> list[str]:
    lines = [f"{partial(e.target)} = {decimal(e.value, 9)}{spell(e)}"]
    if e.gradient and e.difference is not None:
        lines.append(f"  {WORDS['difference'].said(lang)}{decimal(e.difference, 9)}")
    if e.note:
        lines.append(f"  {e.note.said(lang)}")
    if not e.equations:
        return lines
    title = ", ".join(listing.title.said(lang) for listing in e.known)
    lines.append(f"  {title}  {e.where}")
    for listing in e.known:
        formula = listing.derivative_formula if e.gradient else listing.formula
        lines += [f"    {line}" for line in formula.said(lang).splitlines()]
    if e.terms or not e.gradient:
        lines.append(f"  = {e.expression}")
    lines += [f"    {d.label} = {_defined(d.expression, d.term.value)}" for d in e.definitions[:shown]]
    if len(e.definitions) > shown:
        lines.append(f"    {WORDS['more'].said(lang, n=len(e.definitions) - shown)}")
    if len(e.terms) > 1:
        lines += _terms(e, lang, shown)
    if e.sources:
        lines.append(f"  {WORDS['sources'].said(lang)}")
    for source in e.sources[:shown]:
        letter = f"{source.letter} = " if source.letter else ""
        target = partial(source.target).replace(BEFORE.en, BEFORE.said(lang))
        lines.append(f"    {letter}{target} = {decimal(source.value)}{spell(source)}")
    if len(e.sources) > shown:
        lines.append(f"    {WORDS['more'].said(lang, n=len(e.sources) - shown)}")
    return lines


def _terms(e: Explanation, lang: str, shown: int) -> list[str]:
    rows = [(decimal(part.value), _addend(part)) for part in e.terms[:shown]]
    if len(e.terms) > shown:
        rows.append((decimal(e.rest(shown)), WORDS["rest"].said(lang, n=len(e.terms) - shown)))
    rows.append(
        ("0", WORDS["cancelled"].said(lang))
        if e.cancels
        else (decimal(e.term.value if e.term else 0, 9), WORDS["sum"].said(lang))
    )
    width = max(len(value) for value, _ in rows)
    return [f"  {WORDS['terms'].said(lang)}", *(f"    {value:>{width}}  {what}" for value, what in rows)]


def _addend(term: Term) -> str:
    """Write a term in letters and in numbers."""
    letters, numbers = expression(term, letter), expression(term)
    return letters if letters == numbers else f"{letters} = {numbers}"


def partial(target: str) -> str:
    """Write a gradient's target as the derivative that it is."""
    return f"∂loss/∂{target[2:]}" if target.startswith("d ") else target


def _defined(expression: str, value: float) -> str:
    return expression if expression == decimal(value) else f"{expression} = {decimal(value)}"
