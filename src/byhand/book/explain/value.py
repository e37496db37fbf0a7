"""Where a value comes from: the terms of the equation that made it, with the numbers put in."""

from __future__ import annotations

import math

from byhand.book.entries.contract import ENTRIES
from byhand.book.explain.explanation import ExplainError, Explanation, Part, Source, origin, written
from byhand.book.numbers import arithmetic
from byhand.engine.terms import Index, Term
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application


def explain_value(name: str, index: Index, application: Application, which: int, trace: Trace) -> Explanation:
    """Explain one element of a result of an application, of which it is number `which`."""
    result = application.results[which].data
    check_index(name, index, result.shape)
    term = trace.terms(trace.name(application.results[which]), index)
    return explain_term(name, index, float(result[index]), term, application, trace)


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
        terms=tuple(map(Part, parts)),
        total=term.value,
        scale=math.fsum(abs(t.value) for t in parts),
        sources=tuple(ordered),
        note=entry.remark(term, index) if entry.remark else None,
    )


def check_index(name: str, index: Index, shape: tuple[int, ...]) -> None:
    """Raise ExplainError unless the index is one of the shape's."""
    if shape and not index:
        raise ExplainError(
            f"give an index: {name} has shape {shape}. The last one is {written(name, tuple(n - 1 for n in shape))}."
        )
    if len(index) != len(shape) or any(not 0 <= i < n for i, n in zip(index, shape, strict=True)):
        example = f"{name}[{','.join(str(n - 1) for n in shape)}]" if shape else name
        raise ExplainError(
            f"{written(name, index)} does not exist: {name} has shape {shape}. The last one is {example}."
        )
