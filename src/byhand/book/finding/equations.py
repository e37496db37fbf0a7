"""What `where` answers about an equation: its formulas, symbols and places, from its file and its entry."""

from __future__ import annotations

import inspect
from functools import lru_cache

from byhand import equations as _registered  # noqa: F401  (importing the package fills the registry)
from byhand.book.entries.contract import ENTRIES, ByStem, Entry
from byhand.book.finding import source
from byhand.book.finding.finding import NOTHING, Finding, SymbolRow
from byhand.book.finding.flow import order, topics
from byhand.book.words.language import Words
from byhand.book.words.plain_math import plain
from byhand.engine.equation import Composite, Equation, Symbol, registry

WALK_BACK = ("engine/backward.py", "walk_back")  # the derivative of a composite is that of its parts


def of_equations() -> ByStem[Finding]:
    """Return the answer about every equation by name, as data flows."""
    return _of_equations(tuple(ENTRIES.values()))


@lru_cache(maxsize=4)
def _of_equations(entries: tuple[Entry, ...]) -> ByStem[Finding]:
    terms = topics()
    return ByStem({name: _equation(registry[name], ENTRIES[name], terms.get(name)) for name in order()})


def _equation(equation: Equation | Composite, entry: Entry, term: Words | None) -> Finding:
    name = equation.name
    composite = isinstance(equation, Composite)
    forward = equation.compose if composite else equation.forward
    file = source.file_of(forward)
    parts = source.sections(file)
    test = f"test_{name}.py"
    if file.is_relative_to(source.PACKAGE):
        worked_in, tests, pages = (
            f"book/entries/{name}.py",
            f"tests/equations/{test}",
            "docs/equations",
        )
    else:  # its other files are in the same folder
        folder = source.shown(file.parent)
        worked_in, tests, pages = str(file.with_name(f"{name}_entry.py")), f"{folder}/{test}", folder
    return Finding(
        name=name,
        title=Words(equation.title, entry.title_zh),
        code=(source.inside(file), forward.__name__),
        tests=(tests,),
        seed_names=equation.seed_names,
        term=Words(term.en, term.zh) if term and term.en.lower() != equation.title.lower() else NOTHING,
        derived=WALK_BACK if composite else (source.inside(source.file_of(equation.vjp)), equation.vjp.__name__),
        worked_in=(worked_in, "entry"),
        pages=pages,
        latex=equation.latex,
        latex_derivative=equation.derivative,
        formula=Words(parts["Equation"], plain(equation.latex, "zh")),
        derivative_formula=Words(parts["Derivative"], plain(equation.derivative, "zh")),
        symbols=(
            *(_symbol((s,), entry.meanings_zh[s.name]) for s in equation.inputs),
            _symbol(equation.results, entry.result_zh),
        ),
        settings={
            p.name if p.default is p.empty else f"{p.name}={p.default!r}": entry.settings.get(p.name, "")
            for p in inspect.signature(forward).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        },
        source=parts["Source"],
    )


def _symbol(symbols: tuple[Symbol, ...], zh: str) -> SymbolRow:
    """Return the row of an input, or of all results: what differs between them one behind the other."""
    shapes, meanings = (dict.fromkeys(getattr(s, part) for s in symbols) for part in ("shape", "meaning"))
    shape = ", ".join(shapes if len(shapes) == 1 else (s.shape for s in symbols))
    said = Words(shape, shape.replace(" or ", " 或 "))
    if len(symbols) > len(shapes) == 1:
        said = Words(f"{said.en} each", f"各为 {said.zh}")
    names, letters = (", ".join(getattr(s, part) for s in symbols) for part in ("name", "latex"))
    return SymbolRow(names, letters, said, Words(", ".join(meanings), zh))
