"""Explains a value by the terms of the equation that made it, in numbers."""

from __future__ import annotations

from byhand.book.entries.contract import ENTRIES
from byhand.book.explain.explanation import Explanation, Source
from byhand.book.numbers import arithmetic
from byhand.engine.terms import Index, Term
from byhand.tracing.gradients import origin
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application


def explain_term(
    name: str, index: Index, value: float, term: Term, application: Application, trace: Trace
) -> Explanation:
    """Explain a value by a term of the application's equation."""
    entry = ENTRIES[application.equation.name]
    parts = sorted(arithmetic.addends(term), key=lambda t: -abs(t.value))
    sources: dict[tuple[int, Index], Source] = {}
    for part in parts:
        for leaf in arithmetic.leaves(part):
            if leaf.source is not None and leaf.source not in sources:
                which, place = leaf.source
                tensor = application.inputs[which]
                sources[leaf.source] = Source(trace.name(tensor), place, leaf.value, leaf.label.partition("[")[0])
    ordered = list(sources.values())
    if entry.order_of_sources:
        key = entry.order_of_sources(tuple(t.data for t in application.inputs))
        ordered.sort(key=lambda s: key(s.index, s.value))
    return Explanation(
        name,
        index,
        value,
        equations=(application.equation.name,),
        term=term,
        origins=tuple(origin(trace.name(t)) for t in application.inputs),
        definitions=tuple(arithmetic.definitions(term)),
        terms=tuple(parts),
        sources=tuple(ordered),
        note=entry.remark(term, index) if entry.remark else None,
    )
