"""Forward steps of a lesson: each recorded application, element by element, from its terms.

No number is typed by hand: other weights give another lesson.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.equations import of_equations
from byhand.book.lessons.formulas import StepFormula, said
from byhand.book.lessons.lesson import Array, NamedArrays, Number, Step, form, grid, rows_of
from byhand.book.lessons.letters import letter, stands_in
from byhand.book.lessons.naming import place, short, squeezed
from byhand.book.lessons.roles import MODEL, Role, Roles, role
from byhand.book.lessons.working import Element, Working, with_one_whole
from byhand.book.numbers.exact import exact_array
from byhand.book.practice.edits import Asked, mistakes
from byhand.book.words.language import Words
from byhand.engine import Node, Tensor
from byhand.engine.terms import Term, leaves
from byhand.equations.adamw import adamw
from byhand.layers.parameter import Parameter
from byhand.tracing.passes import Pass
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application
from byhand.tracing.updates import rule_trace
from byhand.update_rules import UpdateRule


def forward_steps(trace: Trace, roles: Roles = MODEL) -> list[Step]:
    """Return a step for each application; `roles` says what their results are for."""
    return [forward_step(application, trace, roles) for application in trace.applications]


def given(trace: Trace) -> NamedArrays:
    """Return the arrays that a computation starts from, by name."""
    return tuple((short(name), grid(tensor.data)) for name, tensor in trace.leaves.items())


def forward_step(application: Application, trace: Trace, roles: Roles = MODEL) -> Step:
    """Return one application as a step: every element of its results."""
    inputs = tuple(
        replace(array, name=_said(tensor, array.name))
        for tensor, array in zip(application.inputs, inputs_of(trace, application), strict=True)
    )
    results, stem = arrays_of(trace, application.results), application.equation.name
    readers = sum(any(t is application.inputs[0] for t in a.inputs) for a in trace.applications)
    here = role(roles, stem, results[0].name, alone=readers == 1)
    return _step(application, trace, inputs, results, here)


def arrays_of(trace: Pass, tensors: Iterable[Tensor]) -> tuple[Array, ...]:
    """Return tensors of a pass as arrays of a step."""
    return tuple(
        Array(letter_in(trace, name), short(name), squeezed(tensor.data))
        for name, tensor in ((trace.name(tensor), tensor) for tensor in tensors)
    )


def inputs_of(trace: Pass, use: Application | Node) -> tuple[Array, ...]:
    """Return an application's inputs as arrays of a step.

    An unnamed one, or one named only in the code (`gain`), gets the equation's letter.
    """
    return tuple(
        array
        if tensor.node or (tensor.name and array.letter != rf"\text{{{symbol.name}}}")
        else replace(array, letter=symbol.latex)
        for symbol, tensor, array in zip(use.equation.inputs, use.inputs, arrays_of(trace, use.inputs), strict=False)
    )


def letter_in(trace: Pass, name: str) -> str:
    """Return the letter of a tensor of a pass."""
    made = trace.made.get(name)
    return letter(name, made[0].equation.name if made else "")


def _said(tensor: Tensor, name: str) -> str:
    """Return an input's name; for a single unnamed integer, such as a position, the integer."""
    number = not tensor.name and tensor.node is None and tensor.data.dtype.kind == "i" and tensor.data.size == 1
    return str(tensor.data.item()) if number else name


def update_step(
    name: str, before: Any, gradient: Any, m: Any, v: Any, lr: float, t: int, slope: str = "", /, **static: float
) -> tuple[Step, Any]:
    """Return one AdamW step of one parameter, and the new parameter with its moments; `slope` names its gradient."""
    rule = UpdateRule(adamw, Parameter(before.shape), static)
    rate = exact_array(lr) if before.dtype.kind == "O" else np.asarray(lr, dtype=before.dtype)
    trace = rule_trace(name, rule, rule.inputs(before, gradient, {"m": m, "v": v}, rate, t))
    (application,) = trace.applications
    own = ((letter(known), short(known)) for known in (name, slope or f"∂{name}"))
    called = (*own, *((symbol.latex, symbol.name) for symbol in adamw.inputs[2:]))
    inputs = tuple(Array(*both, squeezed(x.data)) for both, x in zip(called, application.inputs, strict=True))
    new = Array(letter(f"{name}'"), f"{short(name)}'", squeezed(application.results[0].data))
    step = _step(application, trace, inputs, (new,), settings={r"\epsilon": letter("eps")})
    results = tuple(tensor.data for tensor in application.results)
    parameter = inputs[0].label.rstrip("'")  # θ in every step, although the second reads θ'
    title = Words(f"AdamW, update {t}: {parameter}", f"AdamW 第 {t} 次更新：{parameter}")
    return replace(step, title=title), results


def _step(
    application: Application,
    trace: Trace,
    inputs: Sequence[Array],
    results: Sequence[Array],
    here: Role | None = None,
    settings: Mapping[str, str] | None = None,
) -> Step:
    """Return an application as a step.

    here      its purpose in this place
    settings  letters that replace those of the equation's settings
    """
    equation = application.equation
    finding, entry = of_equations()[equation.name], ENTRIES[equation.name]
    formula = StepFormula(equation, inputs, results, settings)
    numbers = () if equation.moves else tuple(_numbers(application, trace, inputs, results[0], formula))
    latex = formula.forward()
    known = _settings(application, trace, formula, latex)
    title = finding.title
    return Step(
        Words(f"{title.en}: {here.name.en}", f"{title.zh}：{here.name.zh}") if here else title,
        said(latex, (*inputs, *known)),
        str(finding.forward),
        numbers,
        rows_of(results),
        latex=latex,
        stem=equation.name,
        goal=here.goal if here else formula.in_words(entry.goal),
        why=(here.why if here else None) or formula.in_words(entry.why),
        reason=(here.why if here else None) or entry.why,
        inputs=(*inputs, *known),
        arrays=tuple(results),
        kept=_kept(application, formula),
        origin=(trace, application),
    )


def _settings(application: Application, trace: Trace, formula: StepFormula, latex: str) -> tuple[Array, ...]:
    """Return the settings and sizes whose letters occur in the formula."""
    letters = ENTRIES[application.equation.name].settings
    found = {letters.get(name, name): x for name, x in application.static.items() if isinstance(x, float | int)}
    if not application.equation.moves:
        answer = trace.answer(trace.name(application.results[0]), (0,) * application.results[0].data.ndim)
        constants = leaves(answer.term) if answer.term else ()
        found |= {term.label: term.value for term in constants if is_size(term)}
    arrays = (Array(formula.written(letter), "", np.asarray(x)) for letter, x in found.items() if letter)
    return tuple(array for array in arrays if stands_in(array.letter, latex))


def is_size(leaf: Term) -> bool:
    """Return whether a number of the arithmetic is a length, such as D."""
    return leaf.source is None and leaf.label.isalpha() and leaf.label.isupper()


def _kept(application: Application, formula: StepFormula) -> tuple[Array, ...]:
    """Return the intermediate arrays that the entry names."""
    on_the_way = ENTRIES[application.equation.name].on_the_way
    if on_the_way is None:
        return ()
    found = on_the_way(floats(application.arrays), floats((application.results[0].data,))[0])
    return tuple(Array(formula.written(letter), "", squeezed(x)) for letter, x in found)


def _numbers(
    application: Application, trace: Trace, inputs: Sequence[Array], result: Array, formula: StepFormula
) -> Iterator[Number]:
    """Yield every element of the first result, each after the labelled parts that it is the first to need."""
    stem, tensor = application.equation.name, application.results[0]
    entry, labels = ENTRIES[stem], [array.label for array in inputs]
    working = Working(tensor.shape, application.arrays, labels, formula)

    def parts() -> Iterator[Number | Element]:
        seen: set[Any] = set()
        for index in np.ndindex(*tensor.shape):
            answer = trace.answer(trace.name(tensor), index)
            assert answer.term
            yield from working.defined(answer.term, index, seen, entry.part_mistakes)
            wrong = mistakes(entry.mistakes, answer.term, Asked(index, floats(answer.arrays), application.static))
            label = place(result.label, index, tensor.shape)
            number = working.number(label, answer.term, index, answer.value, form(tensor.data[index]), wrong)
            yield number, answer.term, index

    return with_one_whole(parts(), working)


def floats(data: Iterable[Any]) -> tuple[np.ndarray, ...]:
    """Return arrays of Exacts as float64, and others as they are."""
    return tuple(np.asarray(x, dtype=np.float64) if x.dtype.kind == "O" else x for x in data)
