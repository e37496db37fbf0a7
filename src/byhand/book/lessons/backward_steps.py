"""Backward steps of a lesson: the gradients that each application passes to its inputs, and their sums.

A gradient is written as its arithmetic; a sum of cotangents times slopes with the letters of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.index import findings
from byhand.book.lessons.forward_steps import WorkedElement, arrays_of, defined, floats, with_inputs
from byhand.book.lessons.lesson import Array, Number, Step, factor, form, leaf_text, number_text, rows_of, term_value
from byhand.book.lessons.naming import place, short, squeezed
from byhand.book.numbers import arithmetic
from byhand.book.practice.edits import Asked, Mistake, mistakes
from byhand.book.words.language import Words
from byhand.book.words.plain_math import plain
from byhand.engine import BackwardStep
from byhand.engine.terms import Term, number
from byhand.tracing.answers import Answer
from byhand.tracing.gradients import Gradients, passed_back
from byhand.tracing.passes import Pass
from byhand.tracing.settled import settled_backward
from byhand.tracing.trace import Trace

ONE = number(1)
MANY = 6  # addends; a longer sum shows only its ends


def backward_steps(trace: Trace, d_result: Any = None) -> list[Step]:
    """Return a step for each application in the backward pass, and a sum for each tensor with several uses."""
    gradients = settled_backward(trace, d_result)
    steps: list[Step] = []
    for back in gradients.steps:
        for name in trace.result_names(back.node):
            steps += _total_step(gradients, name)
        steps.append(_step(gradients, back))
    return steps + [
        step for name in gradients.by_name if name in trace.leaves for step in _total_step(gradients, name)
    ]


def _step(gradients: Gradients, back: BackwardStep) -> Step:
    """Return one application in the backward pass as a step."""
    trace, equation = gradients.trace, back.node.equation
    numbers: list[Number] = []
    arrays: dict[str, Array] = {}
    for slot, (tensor, d) in enumerate(zip(back.node.inputs, back.d_inputs, strict=True)):
        name = trace.name(tensor)
        if d is None or not tensor.requires_grad or name in arrays:
            continue
        together = np.asarray(passed_back(back, tensor))
        if not equation.moves:
            numbers += _gradient_numbers(gradients, back, slot, together)
        arrays[name] = _slope(equation.inputs[slot].latex, name, together)
    letters = _letters(back)
    known = [
        _slope(letter, name, np.asarray(d))
        for letter, name, d in zip(letters, trace.result_names(back.node), back.d_results, strict=True)
    ]
    finding = findings()[equation.name]
    return Step(
        Words(f"Derivative: {finding.title.en}", f"导数：{finding.title.zh}"),
        with_inputs(
            finding.derivative_formula,
            equation,
            tuple(short(trace.name(tensor)) for tensor in back.node.inputs),
            *((f"∂{plain(letter)}", array.name) for letter, array in zip(letters, known, strict=True)),
        ),
        str(finding.derivative),
        tuple(numbers),
        rows_of(arrays.values()),
        stem=finding.name,
        is_derivative=True,
        goal=_goal([array.name for array in known], [array.name for array in arrays.values()]),
        why=ENTRIES[finding.name].why_back,
        inputs=(*known, *_read(back, trace)),
        arrays=tuple(arrays.values()),
        origin=(gradients, back),
    )


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


def _read(back: BackwardStep, trace: Pass) -> list[Array]:
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


def _gradient_numbers(gradients: Gradients, back: BackwardStep, slot: int, d: np.ndarray) -> Iterator[Number]:
    """Yield every element of the gradient that an application passes to one of its inputs, with its arithmetic."""
    node, tensor = back.node, back.node.inputs[slot]
    data = tuple(t.data for t in node.inputs)
    plain_data, d_result = floats(data), np.asarray(back.d_results[0], dtype=np.float64)
    stem, leaf = node.equation.name, leaf_text(data)
    seen: set[Any] = set()
    for index in np.ndindex(*d.shape):
        answer = gradients.contribution(back, tensor, index)
        assert answer.term
        term = answer.term
        if _is_shared(term):
            text, letters = _shared(answer, term, d.shape)
        else:
            term = _as_numbers(term)
            yield from defined(stem, term, WorkedElement(index, d.shape, data), seen)
            text, letters = arithmetic.expression(arithmetic.simplified(term), leaf), ""
        asked = Asked(index, plain_data, node.static, d_result, slot)
        wrong = tuple(mistakes(ENTRIES[stem].gradient_mistakes, term, asked))
        yield Number(place(f"∂{answer.name}", index, d.shape), text, answer.value, form(d[index]), wrong, letters)


def _as_numbers(term: Term) -> Term:
    """Return a term whose leaves are numbers alone: their places in what the forward pass saved are no lesson's."""
    if term.source is not None:
        return number(term.value)
    return replace(term, parts=tuple(map(_as_numbers, term.parts))) if term.parts else term


def _is_shared(term: Term) -> bool:
    """Return whether a term is a sum of cotangents, each times one slope or by itself, as `shares` makes it."""
    pairs = [part.parts or (part, ONE) for part in term.parts]
    return term.op == "sum" and all(len(pair) == 2 and pair[0].value and not pair[0].parts for pair in pairs)


def _shared(answer: Answer, term: Term, shape: tuple[int, ...]) -> tuple[str, str]:
    """Write a sum of cotangents times slopes, in numbers and in letters; only the ends of a long one."""
    target = place(answer.name, answer.index, shape)
    numbers, letters = [], []
    for cotangent, slope in (part.parts or (part, ONE) for part in term.parts):
        d, by = term_value(cotangent, answer.arrays), term_value(slope, answer.arrays)
        which, index = cotangent.source or (0, ())
        result = place(answer.origins[which]["name"], index, answer.arrays[which].shape)
        if slope.value:
            numbers.append(number_text(d) if float(by) == 1 else f"{factor(d)} × {factor(by)}")
        if slope.value or slope.label.startswith("∂"):
            letters.append(f"∂{result} × ∂{result}/∂{target}")
    if len(numbers) > MANY:
        numbers, letters = ([*parts[:2], "…", parts[-1]] for parts in (numbers, letters))
    return " + ".join(numbers).replace("+ −", "− ") or "0", " + ".join(letters)


def _total_step(gradients: Gradients, tensor_name: str) -> list[Step]:
    """Return the step that adds a tensor's gradients from several uses; none for a single use."""
    tensor, name = gradients.trace.tensor(tensor_name), short(tensor_name)
    parts = [passed_back(back, tensor) for back in gradients.uses(tensor)] if tensor.requires_grad else []
    if len(parts) < 2:
        return []
    total = gradients.by_name[tensor_name]
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
            origin=(gradients, tensor_name),
            goal=Words(f"Add up what each use of {name} passed back.", f"把 {name} 每次使用时传回的梯度相加。"),
            why=Words(
                f"A change in {name} affects the loss through every use at once, and small effects add up.",
                f"{name} 的变化同时通过每一处使用影响损失，这些影响相加。",
            ),
        )
    ]
