"""An explanation as a page of text for the terminal, in English or Chinese."""

from __future__ import annotations

from byhand.book.explain.explanation import Explanation
from byhand.book.finding.index import Entry, entries
from byhand.book.numbers.arithmetic import decimal
from byhand.book.words.plain_math import plain

WORDS = {
    "en": {
        "terms": "terms, largest first",
        "rest": "the rest, {n} terms",
        "sum": "sum",
        "sources": "made from",
        "reaches": "reaches",
        "more": "and {n} more",
        "difference": "central difference: ",
        "slope": "slope",
        "before": " before",
        "cancelled": "sum, up to rounding",
    },
    "zh": {
        "terms": "各项，从大到小",
        "rest": "其余 {n} 项",
        "sum": "合计",
        "sources": "由这些数得到",
        "reaches": "影响到",
        "more": "另有 {n} 个",
        "difference": "中心差分：",
        "slope": "斜率",
        "before": "（更新前）",
        "cancelled": "合计，不计舍入误差",
    },
}


def text(explanation: Explanation, lang: str = "en", shown: int = 8) -> str:
    """Return the explanation and its children, `shown` terms and sources of each, the rest summed on one line."""
    lines = _lines(explanation, WORDS[lang], lang, shown)
    for child in explanation.children:
        lines += ["", *("  " + line if line else "" for line in text(child, lang, shown).splitlines())]
    return "\n".join(lines)


def _lines(e: Explanation, words: dict[str, str], lang: str, shown: int) -> list[str]:
    lines = [f"{_partial(e.target)} = {decimal(e.value, 9)}"]
    if e.grad and e.difference is not None:
        lines.append(f"  {words['difference']}{decimal(e.difference, 9)}")
    if e.note:
        lines.append(f"  {e.note.said(lang)}")
    if not e.equation:
        return lines
    names = [entries()[name] for name in e.equation.split(", ")]
    title = ", ".join(entry.title_zh if lang == "zh" else entry.title for entry in names)
    lines.append(f"  {title}  {e.where}")
    lines += [f"    {line}" for line in _formula(e, names, lang).splitlines()]
    if not e.grad:
        lines.append(f"  = {e.expression}")
        lines += [f"    {d.label} = {_defined(d.expression, d.term.value)}" for d in e.definitions[:shown]]
        if len(e.definitions) > shown:
            lines.append(f"    {words['more'].format(n=len(e.definitions) - shown)}")
    if len(e.terms) > (0 if e.grad else 1):
        lines += _terms(e, words, shown)
    if e.sources:
        lines.append(f"  {words['reaches' if e.grad else 'sources']}")
    for source in e.sources[:shown]:
        letter = f"{source.letter} = " if source.letter and not e.grad else ""
        lines.append(
            f"    {letter}{_partial(source.target).replace(' before', words['before'])} = {decimal(source.value)}"
        )
    if len(e.sources) > shown:
        lines.append(f"    {words['more'].format(n=len(e.sources) - shown)}")
    return lines


def _formula(e: Explanation, names: list[Entry], lang: str) -> str:
    if lang != "zh":
        return e.formula
    return "\n".join(plain(n.latex_derivative if e.grad else n.latex, lang) for n in names)


def _terms(e: Explanation, words: dict[str, str], shown: int) -> list[str]:
    rows = [
        (decimal(part.value), _partial(part.expression).replace("× slope =", f"× {words['slope']} ="))
        for part in e.terms[:shown]
    ]
    if len(e.terms) > shown:
        rest = e.terms[shown:]
        rows.append((decimal(sum(p.value for p in rest)), words["rest"].format(n=len(rest))))
    rows.append(("0", words["cancelled"]) if e.cancels else (decimal(e.total, 9), words["sum"]))
    width = max(len(value) for value, _ in rows)
    return [f"  {words['terms']}", *(f"    {value:>{width}}  {what}" for value, what in rows)]


def _partial(target: str) -> str:
    return f"∂loss/∂{target[2:]}" if target.startswith("d ") else target


def _defined(expression: str, value: float) -> str:
    return expression if expression == decimal(value) else f"{expression} = {decimal(value)}"
