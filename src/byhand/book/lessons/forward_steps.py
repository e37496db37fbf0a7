"""Forward steps of a lesson: each recorded application, element by element, from its terms.

No number is typed by hand: other weights give another lesson.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.index import findings
from byhand.book.lessons.lesson import Array, NamedArrays, Number, Step, form, grid, leaf_text, rows_of, term_value
from byhand.book.lessons.naming import place, short, squeezed
from byhand.book.lessons.roles import role
from byhand.book.numbers import arithmetic
from byhand.book.numbers.exact import exact_array
from byhand.book.practice.edits import Asked, Mistake, mistakes
from byhand.book.words.language import Words
from byhand.book.words.plain_math import plain
from byhand.engine import Equation, Symbol, Tensor
from byhand.engine.terms import Index, Term, labelled, leaves
from byhand.equations.adamw import adamw
from byhand.layers.parameter import Parameter
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Application
from byhand.tracing.updates import rule_trace
from byhand.update_rules import UpdateRule


def forward_steps(trace: Trace, names: Callable[[str], bool] = lambda name: True) -> list[Step]:
    """Return a step for each application whose (first) result's name is wanted."""
    return [forward_step(a, trace) for a in trace.applications if names(trace.name(a.results[0]))]


def given(trace: Trace) -> NamedArrays:
    """Return the arrays that a computation starts from, by name."""
    return tuple((short(name), grid(tensor.data)) for name, tensor in trace.leaves.items())


def forward_step(application: Application, trace: Trace) -> Step:
    """Return one application as a step: every element of its results."""
    sources = tuple(map(trace.name, application.inputs))
    letters = tuple(_said(tensor, name) for tensor, name in zip(application.inputs, sources, strict=True))
    readers = sum(any(t is application.inputs[0] for t in a.inputs) for a in trace.applications)
    return _step(application, trace, tuple(map(trace.name, application.results)), letters, alone=readers == 1)


def _said(tensor: Tensor, name: str) -> str:
    """Return an input's name; a single integer without a name of its own, such as a position, is its number."""
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
    step = _step(application, trace, (f"{name}'",), (name, slope or f"∂{name}"))
    results = tuple(tensor.data for tensor in application.results)
    return replace(step, title=Words(f"AdamW, step {t}: {short(name)}", f"AdamW 第 {t} 步：{short(name)}")), results


def _step(
    application: Application,
    trace: Trace,
    names: tuple[str, ...],
    letters: tuple[str, ...],
    alone: bool = False,
) -> Step:
    """Return an application as a step.

    names    of the shown results
    letters  names of the inputs, in the order of the formula's letters
    alone    whether nothing else reads the first input
    """
    equation = application.equation
    finding = findings()[equation.name]
    seen: set[Any] = set()
    places = () if equation.moves else np.ndindex(*application.results[0].shape)
    inputs = (*letters, *(symbol.name for symbol in equation.inputs[len(letters) :]))
    arrays = arrays_of(equation.results, names, application.results)
    here = role(equation.name, short(names[0]), alone)
    title = finding.title
    return Step(
        Words(f"{title.en}: {here.name.en}", f"{title.zh}：{here.name.zh}") if here else title,
        with_inputs(finding.formula, equation, tuple(map(short, letters))),
        str(finding.forward),
        tuple(n for index in places for n in _numbers(application, trace, names[0], index, seen)),
        rows_of(arrays),
        stem=equation.name,
        goal=here.goal if here else ENTRIES[equation.name].goal,
        why=(here.why if here else None) or ENTRIES[equation.name].why,
        inputs=(*arrays_of(equation.inputs, inputs, application.inputs), *_settings(application)),
        arrays=arrays,
        kept=_kept(application),
        origin=(trace, application),
    )


def arrays_of(symbols: Iterable[Symbol], names: Iterable[str], tensors: Iterable[Tensor]) -> tuple[Array, ...]:
    """Return tensors as arrays of a step, with their letters and names."""
    return tuple(
        Array(symbol.latex, short(name), squeezed(tensor.data))
        for symbol, name, tensor in zip(symbols, names, tensors, strict=False)
    )


def _settings(application: Application) -> tuple[Array, ...]:
    """Return the settings that the entry has letters for."""
    return tuple(
        Array(letter, "", np.asarray(application.static[setting]))
        for setting, letter in ENTRIES[application.equation.name].settings.items()
        if letter and isinstance(application.static.get(setting), float)
    )


def _kept(application: Application) -> tuple[Array, ...]:
    """Return the intermediate arrays that the entry names."""
    on_the_way = ENTRIES[application.equation.name].on_the_way
    if on_the_way is None:
        return ()
    found = on_the_way(floats(application.arrays), floats((application.results[0].data,))[0])
    return tuple(Array(letter, "", squeezed(x)) for letter, x in found)


def with_inputs(said: Words, equation: Equation, names: tuple[str, ...], *others: tuple[str, str]) -> Words:
    """Return a formula and, on another line, the arrays that its letters stand for, unless the names are equal."""
    letters = [(plain(symbol.latex), name) for symbol, name in zip(equation.inputs, names, strict=False)]
    words = [symbol.name for symbol in equation.inputs]
    english = [(_as_in(said.en, letter, word), name) for (letter, name), word in zip(letters, words, strict=False)]
    english += [(_as_in(said.en, letter.replace("∂", "d_").replace("X_out", "y")), name) for letter, name in others]
    lines = [
        separator.join(f"{letter} = {name}" for letter, name in pairs if letter != name)
        for separator, pairs in ((", ", english), ("，", (*letters, *others)))
    ]
    return Words(f"{said.en}\nhere {lines[0]}", f"{said.zh}\n这里 {lines[1]}") if all(lines) else said


def _as_in(formula: str, letter: str, word: str = "") -> str:
    """Return an input's letter as a formula in plain text writes it: `q` for Q, `W` for W_te, `theta` for θ."""
    spellings = (letter, letter.lower(), re.sub(r"(?<=\w)_\w+$", "", letter.removeprefix("d_")), word)
    return next((s for s in spellings if s and re.search(rf"(?<![^\W_]){re.escape(s)}(?![\w(])", formula)), letter)


@dataclass(frozen=True)
class WorkedElement:
    """An element of an array of this shape, the arrays that it is worked from, and what the reader knows these by."""

    index: Index
    shape: tuple[int, ...]
    data: tuple[Any, ...]
    names: tuple[str, ...] = ()

    def label(self, part: Term) -> str:
        """Return a labelled part's name with the element, or the row, that it belongs to."""
        name, bracket, inside = part.label.partition("[")
        if not bracket:
            return place(name, self.index[: len(self.index) - part.common_axes], self.shape)
        row = tuple(map(int, inside.removesuffix("]").split(",")))  # of each row of the first input: loss[0,2]
        return place(name, row, self.data[0].shape[: len(row)])

    def number(self, label: str, term: Term, value: float, exact: str, wrong: Iterable[Mistake]) -> Number:
        """Return a number that is worked from these arrays."""
        simple, letter = arithmetic.simplified(term), _letter(self.data)
        numbers, letters = arithmetic.expression(simple, leaf_text(self.data)), arithmetic.expression(term, letter)
        return Number(label, numbers, value, exact, tuple(wrong), letters, _follow(term, self))


def _numbers(application: Application, trace: Trace, name: str, index: Index, seen: set[Any]) -> Iterator[Number]:
    """Yield the labelled parts that this element needs and no earlier one did, then the element itself."""
    result = application.results[0]
    answer = trace.answer(trace.name(result), index)
    assert answer.term
    at = WorkedElement(index, result.shape, answer.arrays, tuple(origin["name"] for origin in answer.origins))
    stem = application.equation.name
    yield from defined(stem, answer.term, at, seen)
    wrong = mistakes(ENTRIES[stem].mistakes, answer.term, Asked(index, floats(answer.arrays), application.static))
    label = place(name, index, result.shape)
    yield at.number(label, answer.term, answer.value, form(result.data[index]), wrong)


def defined(stem: str, term: Term, at: WorkedElement, seen: set[Any]) -> Iterator[Number]:
    """Yield the labelled parts of a term that were not seen before, each with its element or row."""
    for part in labelled(term):
        key = (part.label, tuple((leaf.source, leaf.value) for leaf in leaves(part)))
        if key in seen or part.op == "max":
            continue
        seen.add(key)
        slips = ENTRIES[stem].part_mistakes.get(part.label, ()) if part.op == "ratio" else ()
        exact = form(term_value(part, at.data))
        yield at.number(at.label(part), part, part.value, exact, mistakes(slips, part, Asked()))


def _letter(data: tuple[Any, ...]) -> arithmetic.Leaf:
    """Return the function that writes a leaf by its letter and index: `q[0,1]`."""

    def leaf(term: Term) -> str:
        if term.source is None:
            return arithmetic.letter(term)
        which, index = term.source
        return place(term.label.partition("[")[0], index, data[which].shape)

    return leaf


def _follow(term: Term, at: WorkedElement) -> Callable[[Mapping[str, float]], float]:
    """Return the function that works a term's value from other numbers of inputs and labelled parts, by label."""

    def value(numbers: Mapping[str, float]) -> float:
        def given(part: Term) -> float | None:
            if part.source is None:
                return numbers.get(at.label(part)) if part.parts else None
            which, index = part.source
            return numbers.get(place(at.names[which], index, at.data[which].shape))

        return arithmetic.reworked(term, given)

    return value


def floats(data: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    """Return arrays of Exacts as float64, and others as they are."""
    return tuple(np.asarray(x, dtype=np.float64) if x.dtype.kind == "O" else x for x in data)
