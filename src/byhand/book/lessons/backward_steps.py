"""Backward steps of a lesson: the gradients that each application passes to its inputs, and their sums."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.equations import of_equations
from byhand.book.finding.source import pointer
from byhand.book.lessons.formulas import QUAD, StepFormula, said
from byhand.book.lessons.forward_steps import arrays_of, floats, inputs_of, is_size, letter_in
from byhand.book.lessons.lesson import Array, Number, Step, form, leaf_text, rows_of
from byhand.book.lessons.letters import PARTIAL, label, share, stands_in
from byhand.book.lessons.naming import place, short, squeezed
from byhand.book.lessons.working import Element, Working, with_one_whole
from byhand.book.numbers import arithmetic
from byhand.book.practice.edits import Asked, Mistake, mistakes
from byhand.book.words.language import Words
from byhand.engine import BackwardStep, Tensor
from byhand.engine.terms import Term, element, leaves, total
from byhand.tracing.gradients import Gradients, passed_back
from byhand.tracing.settled import settled_backward
from byhand.tracing.trace import Trace


def backward_steps(trace: Trace, d_result: Any = None) -> list[Step]:
    """Return a step for each application in the backward pass, and a sum for each tensor with several uses."""
    gradients = settled_backward(trace, d_result)
    steps: list[Step] = []
    for back in gradients.steps:
        for name in trace.result_names(back.node):
            steps += _total_step(gradients, name)
        steps.append(_ApplicationBack(gradients, back).step())
    return steps + [
        step for name in gradients.by_name if name in trace.leaves for step in _total_step(gradients, name)
    ]


def _slope(gradients: Gradients, name: str, d: Any, number: int = 0) -> Array:
    """Return a tensor's gradient as an array; with a number, the share that this use passed back."""
    letter = f"{PARTIAL}{letter_in(gradients.trace, name)}"
    if number:
        part = share(letter, number)
        return Array(part, label(part), squeezed(d))
    return Array(letter, f"∂{short(name)}", squeezed(d))


class _ApplicationBack:
    """One application in the backward pass."""

    def __init__(self, gradients: Gradients, back: BackwardStep) -> None:
        self.gradients, self.back, self.node = gradients, back, back.node
        trace, self.equation = gradients.trace, back.node.equation
        self.entry, self.finding = ENTRIES[self.equation.name], of_equations()[self.equation.name]
        results = trace.result_names(self.node)
        self.inputs = inputs_of(trace, self.node)
        self.results = arrays_of(trace, map(trace.tensor, results))
        self.known = tuple(_slope(gradients, n, d) for n, d in zip(results, back.d_results, strict=True))
        self.made: dict[int, Array] = {}  # by slot; of a tensor that is read twice, the first
        for slot, (tensor, d) in enumerate(zip(self.node.inputs, back.d_inputs, strict=True)):
            seen = any(tensor is self.node.inputs[other] for other in self.made)
            if d is not None and tensor.requires_grad and not seen:
                self.made[slot] = self._made(tensor)
        self.formula = StepFormula(self.equation, self.inputs, self.results)
        self.latex = self._shares(self.formula.derivative(self.made))

    def _made(self, tensor: Tensor) -> Array:
        uses, name = self.gradients.uses(tensor), self.gradients.trace.name(tensor)
        number = uses.index(self.back) + 1 if len(uses) > 1 else 0
        return _slope(self.gradients, name, passed_back(self.back, tensor), number)

    def _shares(self, latex: str) -> str:
        """Mark each derivative that is only one use's share as a share."""
        for slot, array in self.made.items():
            number = re.match(r"\\partial_(\d)", array.letter)
            letter = self.inputs[slot].letter
            begins = (f"{PARTIAL}{letter}", f"{PARTIAL}({letter})")
            lines = latex.split(QUAD)
            latex = QUAD.join(share(x, int(number[1])) if number and x.startswith(begins) else x for x in lines)
        return latex

    def step(self) -> Step:
        """Return it as a step."""
        made, read, why = tuple(self.made.values()), self._read(), self._why()
        known, wanted = (list(dict.fromkeys(array.label for array in arrays)) for arrays in (self.known, made))
        return Step(
            Words(f"Backward: {self.finding.title.en}", f"反向：{self.finding.title.zh}"),
            said(self.latex, (*self.known, *read)),
            str(self.finding.derivative),
            () if self.equation.moves else tuple(n for slot in self.made for n in self._numbers(slot)),
            rows_of(made),
            latex=self.latex,
            stem=self.finding.name,
            is_derivative=True,
            goal=Words(
                f"Find {' and '.join(filter(None, (', '.join(wanted[:-1]), wanted[-1])))} from {', '.join(known)}.",
                f"由 {'、'.join(known)} 求 {'、'.join(wanted)}。",
            ),
            why=self.formula.in_words(why),
            reason=why,
            inputs=(*self.known, *read),
            arrays=made,
            origin=(self.gradients, self.back),
        )

    def _why(self) -> Words | None:
        """Return the reasons for the derivatives that the step makes."""
        of_each = self.entry.why_back_of
        if self.inputs[0].data.ndim == 1:
            of_each = self.entry.why_back_of_row or of_each
        names = [self.equation.inputs[slot].name for slot in self.made]
        said = [of_each[name] for name in names if name in of_each]
        return Words(" ".join(x.en for x in said), "".join(x.zh for x in said)) if said else self.entry.why_back

    def _read(self) -> tuple[Array, ...]:
        """Return the arrays of the forward pass and the settings whose letters occur in the derivative's formula."""
        passed = (array.letter for array in (*self.inputs, *self.results))
        of = "|".join(rf"{x}|\({x}\)" for x in sorted(map(re.escape, passed), key=len, reverse=True))
        bare = re.sub(rf"\\partial(_\d)? *({of})(?![A-Za-z'])", "", self.latex)
        saved = [
            Array(self.formula.written(letter), "", squeezed(kept))
            for letter, kept in zip(self.entry.saved, self.node.saved, strict=False)
            if letter
        ]
        named = {array.letter: array for array in (*saved, *self.inputs, *self.results)}
        static = {self.entry.settings.get(name, name): x for name, x in self.node.static.items()}
        static = {letter: x for letter, x in static.items() if isinstance(x, float | int)} | self._constants()
        settings = (Array(letter, "", np.asarray(x)) for letter, x in static.items() if letter)
        arrays = (array for array in (*named.values(), *settings) if stands_in(array.letter, bare))
        return tuple(arrays)

    def _constants(self) -> dict[str, float]:
        """Return the sizes that the arithmetic names, such as D."""
        if self.equation.moves or not self.made:
            return {}
        slot = next(iter(self.made))
        terms = (self._term(slot, index)[0] for index in np.ndindex(*self.node.inputs[slot].shape))
        return next(filter(None, ({x.label: x.value for x in leaves(term) if is_size(x)} for term in terms)), {})

    def _term(self, slot: int, index: tuple[int, ...]) -> tuple[Term, float, Any]:
        answer = self.gradients.contribution(self.back, self.node.inputs[slot], index)
        assert answer.term
        return answer.term, answer.value, answer.arrays

    def _numbers(self, slot: int) -> Iterator[Number]:
        """Return every element of the gradient of one of the inputs, with its arithmetic."""
        array, shape = self.made[slot], self.node.inputs[slot].shape
        d, stem = np.asarray(passed_back(self.back, self.node.inputs[slot])), self.equation.name
        saved = [self._label_of(kept) for kept in self.node.saved]
        labels = (*(known.label for known in self.known), *saved)
        working = Working(shape, (*self.back.d_results, *self.node.saved), labels, self.formula)
        plain_data = floats(tensor.data for tensor in self.node.inputs)
        d_result = np.asarray(self.back.d_results[0], dtype=np.float64)
        right = self._line(array.letter).partition("= ")[2]
        in_front = not re.match(r"(\\frac\{|\()*\\partial", right)

        def parts() -> Iterator[Number | Element]:
            seen: set[Any] = set()
            for index in np.ndindex(*shape):
                term, value, _ = self._term(slot, index)
                asked = Asked(index, plain_data, self.node.static, d_result, slot)
                wrong = tuple(mistakes(ENTRIES[stem].gradient_mistakes, term, asked))
                term = _slopes_first(term) if in_front else term
                yield from working.defined(term, index, seen, {})
                named = place(array.label, index, shape)
                yield working.number(named, term, index, value, form(d[index]), wrong), term, index

        return with_one_whole(parts(), working)

    def _line(self, letter: str) -> str:
        return next((line for line in self.latex.split(QUAD) if line.startswith(letter)), "")

    def _label_of(self, kept: Any) -> str:
        """Return the label of an array that was saved: an input's, a result's, or none."""
        for tensor, array in zip(self.node.inputs, self.inputs, strict=True):
            if tensor.data is kept:
                return array.label
        if self.results[0].data.size == np.size(kept) and np.array_equal(self.results[0].data, squeezed(kept)):
            return self.results[0].label
        return ""


def _slopes_first(term: Term) -> Term:
    """Return a sum of products of two, the factors exchanged: x times ∂y, as in the formula x^T ∂y."""
    if term.op != "sum" or not all(part.op == "product" and len(part.parts) == 2 for part in term.parts):
        return term
    return replace(term, parts=tuple(replace(part, parts=tuple(reversed(part.parts))) for part in term.parts))


def _total_step(gradients: Gradients, tensor_name: str) -> list[Step]:
    """Return the step that adds a tensor's gradients from several uses; none for a single use."""
    tensor = gradients.trace.tensor(tensor_name)
    parts = [passed_back(back, tensor) for back in gradients.uses(tensor)] if tensor.requires_grad else []
    if len(parts) < 2:
        return []
    data = gradients.by_name[tensor_name]
    result = _slope(gradients, tensor_name, data)
    shares = tuple(_slope(gradients, tensor_name, part, k) for k, part in enumerate(parts, 1))
    latex = f"{result.letter} = {' + '.join(array.letter for array in shares)}"
    of = result.label.removeprefix("∂")
    numbers: list[Number] = []
    for index in np.ndindex(*data.shape):
        term = total(element(tuple(parts), k, index, "") for k in range(len(parts)))
        slip = Mistake("forgot one of the paths", "漏掉了其中一路", float(parts[-1][index]))
        letters = " + ".join(place(array.label, index, data.shape) for array in shares)
        value, named = float(data[index]), place(result.label, index, data.shape)
        expression, digits = arithmetic.written(term, leaf_text(parts), value)
        numbers.append(
            Number(named, expression, value, form(data[index]), (slip,), letters, whole=not numbers, digits=digits)
        )
    return [
        Step(
            Words(f"The gradients of {of} add up", f"{of} 的各路梯度相加"),
            said(latex, ()),
            pointer("engine/backward.py:backward"),
            tuple(numbers),
            rows_of([result]),
            latex=latex,
            inputs=shares,
            arrays=(result,),
            origin=(gradients, tensor_name),
            goal=Words(f"Add up what each use of {of} passed back.", f"{of} 用在几处，就把各处传回的梯度相加。"),
            why=Words(
                "A change in a number affects the loss through every use at once, and small effects add up.",
                "一个数变了，用到它的每一处都会影响损失，这些影响要相加。",
            ),
        )
    ]
