"""Backward steps of a lesson: the gradients that each application passes to its inputs, and their sums.

A gradient is written as its arithmetic; a sum of cotangents times slopes with the letters of both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.index import findings
from byhand.book.lessons.forward_steps import WorkedElement, arrays_of, defined, floats, with_inputs
from byhand.book.lessons.lesson import Array, Number, Step, factor, form, leaf_text, number_text, rows_of, term_value
from byhand.book.lessons.naming import place, short, squeezed
from byhand.book.numbers import arithmetic
from byhand.book.numbers.rounding import settled_backward
from byhand.book.practice.edits import Asked, Mistake, mistakes
from byhand.book.words.language import Words
from byhand.book.words.plain_math import plain
from byhand.engine import BackwardStep, Tensor
from byhand.engine.terms import Index, Term, number, total
from byhand.tracing.gradients import gradient_term
from byhand.tracing.trace import Trace

ONE = number(1)
MANY = 6  # addends; a longer sum shows only its ends


def backward_steps(trace: Trace, d_result: Any = None) -> list[Step]:
    """Return a step for each application in the backward pass, and a sum for each tensor with several uses."""
    gathered: dict[str, list[np.ndarray]] = {}
    steps: list[Step] = []
    for back in settled_backward(trace, d_result).steps:
        for name in trace.result_names(back.node):
            steps += _total_step(short(name), gathered.pop(name, []))
        numbers: list[Number] = []
        arrays: list[Array] = []
        done: set[int] = set()
        for slot, (tensor, d) in enumerate(zip(back.node.inputs, back.d_inputs, strict=True)):
            if d is None or not tensor.requires_grad or id(tensor) in done:
                continue
            done.add(id(tensor))
            name = trace.name(tensor)
            together = np.asarray(_sum_for(tensor, back))
            gathered.setdefault(name, []).append(together)
            if not back.node.equation.moves:
                numbers += _gradient_numbers(back, slot, name, together, trace)
            arrays.append(_slope(back.node.equation.inputs[slot].latex, name, together))
        letters = _letters(back)
        known = [
            _slope(letter, name, np.asarray(d))
            for letter, name, d in zip(letters, trace.result_names(back.node), back.d_results, strict=True)
        ]
        finding = findings()[back.node.equation.name]
        steps.append(
            Step(
                Words(f"Derivative: {finding.title.en}", f"导数：{finding.title.zh}"),
                with_inputs(
                    finding.derivative_formula,
                    back.node.equation,
                    tuple(short(trace.name(tensor)) for tensor in back.node.inputs),
                    *((f"∂{plain(letter)}", array.name) for letter, array in zip(letters, known, strict=True)),
                ),
                str(finding.derivative),
                tuple(numbers),
                rows_of(arrays),
                stem=finding.name,
                is_derivative=True,
                goal=_goal([array.name for array in known], [array.name for array in arrays]),
                why=ENTRIES[finding.name].why_back,
                inputs=(*known, *_read(back, trace)),
                arrays=tuple(arrays),
            )
        )
    for name, parts in gathered.items():
        steps += _total_step(short(name), parts)
    return steps


def _goal(known: list[str], wanted: list[str]) -> Words:
    """Return the goal of a backward step."""
    return Words(
        f"From {', '.join(known)} to {', '.join(wanted)}: the derivative of the loss with respect to each input.",
        f"由 {'、'.join(known)} 求 {'、'.join(wanted)}，即损失对各个输入的导数。",
    )


def _letters(back: BackwardStep) -> list[str]:
    """Return the letter of each result, as the derivative's formula has it."""
    equation = back.node.equation
    letters = [symbol.latex for symbol in equation.results]
    if letters[0] in (symbol.latex for symbol in equation.inputs):
        letters = [f"{letters[0]}_{{out}}"]  # the residual stream is X before and after
    return letters


def _slope(letter: str, name: str, d: np.ndarray) -> Array:
    return Array(rf"\partial {letter}", f"∂{short(name)}", squeezed(d))


def _read(back: BackwardStep, trace: Trace) -> list[Array]:
    """Return the arrays of the forward pass whose letters stand in the derivative's formula."""
    equation, formula = back.node.equation, findings()[back.node.equation.name].latex_derivative
    inputs, results = map(trace.name, back.node.inputs), trace.result_names(back.node)
    arrays = [
        *arrays_of(equation.inputs, inputs, back.node.inputs),
        *arrays_of(equation.results, results, map(trace.tensor, results)),
    ]
    for letter, kept in zip(ENTRIES[equation.name].saved, back.node.saved, strict=False):
        if letter:
            arrays.append(Array(letter, "", squeezed(kept)))
    bare = re.sub(r"\\partial\s*\w+", "", formula)
    return [
        array
        for array in arrays
        if not array.name or re.search(rf"(?<![a-zA-Z\\]){re.escape(array.letter)}(?![a-zA-Z])", bare)
    ]


def _sum_for(tensor: Tensor, back: BackwardStep) -> Any:
    """Add the gradients that one application passes to a tensor, which may be several of its inputs (x + x)."""
    first, *others = [
        d for t, d in zip(back.node.inputs, back.d_inputs, strict=True) if t is tensor and d is not None
    ]
    return sum(others, first)


def _gradient_numbers(back: BackwardStep, slot: int, name: str, d: np.ndarray, trace: Trace) -> Iterator[Number]:
    """Yield every element of the gradient of one input, with its arithmetic."""
    data = tuple(t.data for t in back.node.inputs)
    plain_data, read = floats(data), (*back.d_results, *back.node.saved)
    stem = back.node.equation.name
    d_result = np.asarray(back.d_results[0], dtype=np.float64)
    slots = [k for k, t in enumerate(back.node.inputs) if t is back.node.inputs[slot]]
    names = [place_of(n, np.shape(x)) for n, x in zip(trace.result_names(back.node), back.d_results, strict=True)]
    seen: set[Any] = set()
    for index in np.ndindex(*d.shape):
        terms = [gradient_term(trace, back, k, index) for k in slots]
        if all(map(_is_shared, terms)):
            term = total(part for t in terms for part in t.parts)
            text, letters = _shared(term, read, place(name, index, d.shape), names)
        else:
            term = _as_numbers(total(terms) if len(terms) > 1 else terms[0])
            leaf = leaf_text(data)
            yield from defined(stem, term, leaf, WorkedElement(index, d.shape, data), seen)
            text, letters = arithmetic.expression(arithmetic.simplified(term), leaf), ""
        asked = Asked(index, plain_data, back.node.static, d_result, slot)
        wrong = tuple(mistakes(ENTRIES[stem].gradient_mistakes, term, asked))
        yield Number(place(f"∂{name}", index, d.shape), text, float(d[index]), form(d[index]), wrong, letters)


def _as_numbers(term: Term) -> Term:
    """Return a term whose leaves are numbers alone: their places in what the forward pass saved are no lesson's."""
    if term.source is not None:
        return number(term.value)
    return replace(term, parts=tuple(map(_as_numbers, term.parts))) if term.parts else term


def _is_shared(term: Term) -> bool:
    """Return whether a term is a sum of cotangents, each times one slope or by itself, as `shares` makes it."""
    pairs = [part.parts or (part, ONE) for part in term.parts]
    return term.op == "sum" and all(len(pair) == 2 and pair[0].value and not pair[0].parts for pair in pairs)


def _shared(
    term: Term, data: tuple[Any, ...], target: str, names: Sequence[Callable[[Index], str]]
) -> tuple[str, str]:
    """Write a sum of cotangents times slopes, in numbers and in letters; only the ends of a long one."""
    pairs = [part.parts or (part, ONE) for part in term.parts]
    numbers, letters = [], []
    for cotangent, slope in pairs:
        d, by = term_value(cotangent, data), term_value(slope, data)
        which, place = cotangent.source or (0, ())
        if slope.value:
            numbers.append(number_text(d) if float(by) == 1 else f"{factor(d)} × {factor(by)}")
        if slope.value or slope.label.startswith("∂"):
            letters.append(f"∂{names[which](place)} × ∂{names[which](place)}/∂{target}")
    if len(numbers) > MANY:
        numbers, letters = ([*parts[:2], "…", parts[-1]] for parts in (numbers, letters))
    return " + ".join(numbers).replace("+ −", "− ") or "0", " + ".join(letters)


def place_of(name: str, shape: tuple[int, ...]) -> Callable[[Index], str]:
    """Return the function that names an element of an array."""
    return lambda index: place(name, index, shape)


def _total_step(name: str, parts: list[np.ndarray]) -> list[Step]:
    """Return the step that adds a tensor's gradients from several uses; none for a single use."""
    if len(parts) < 2:
        return []
    total = sum(parts[1:], parts[0])
    numbers = tuple(
        Number(
            place(f"∂{name}", index, total.shape),
            " + ".join(factor(part[index]) for part in parts),
            float(total[index]),
            form(total[index]),
            (Mistake("forgot one of the ways", "漏掉了其中一路", float(parts[-1][index])),),
        )
        for index in np.ndindex(*total.shape)
    )
    result = Array(r"\text{a} + \text{b}" if len(parts) == 2 else r"\textstyle\sum", f"∂{name}", squeezed(total))
    return [
        Step(
            Words(f"The gradients of {name} add up", f"{name} 的各路梯度相加"),
            Words("d_x = the sum of the gradients that the uses of x passed back", "∂x = x 每次使用时传回的梯度之和"),
            str(findings()["backward"].forward),
            numbers,
            rows_of([result]),
            inputs=tuple(
                Array(rf"\text{{{letter}}}", f"∂{name}", squeezed(part))
                for letter, part in zip("abcdef", parts, strict=False)
            ),
            arrays=(result,),
            goal=Words(f"Add up what each use of {name} passed back.", f"把 {name} 每次使用时传回的梯度相加。"),
            why=Words(
                f"A change in {name} affects the loss through every use at once, and small effects add up.",
                f"{name} 的变化同时通过每一处使用影响损失，这些影响相加。",
            ),
        )
    ]
