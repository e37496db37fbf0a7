"""Steps of a lesson on the way back: what each application hands to its inputs, and where the ways add up.

A gradient is written as the derivative's own arithmetic where that is known (`gradient_terms`), and as a sum of
cotangents times slopes everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.index import listings
from byhand.book.lessons.forward_steps import defined, floats, with_inputs
from byhand.book.lessons.lesson import Number, Step, factor, form, grid, leaf_text
from byhand.book.numbers import arithmetic
from byhand.book.numbers.arithmetic import written
from byhand.book.numbers.rounding import settled_backward
from byhand.book.practice.edits import Asked, Mistake, mistakes
from byhand.book.words.language import Words
from byhand.book.words.plain_math import plain
from byhand.engine import BackwardStep, Tensor
from byhand.engine.terms import number, product, total
from byhand.tracing.trace import Contribution, Trace, contributions

MANY = 6  # of a sum of more contributions only the ends are shown


def backward_steps(trace: Trace, d_result: Any = None) -> list[Step]:
    """Return a step for each application on the way back, with sums where a tensor was used more than once."""
    gathered: dict[str, list[np.ndarray]] = {}
    steps: list[Step] = []
    for back in settled_backward(trace, d_result).steps:
        for name in trace.result_names(back.node):
            steps += _total_step(name, gathered.pop(name, []))
        numbers: list[Number] = []
        results: list[tuple[str, str]] = []
        wanted: list[str] = []
        done: set[int] = set()
        for slot, (tensor, d) in enumerate(zip(back.node.inputs, back.d_inputs, strict=True)):
            if d is None or not tensor.requires_grad or id(tensor) in done:
                continue
            done.add(id(tensor))
            name = trace.name(tensor)
            wanted.append(f"∂{name}")
            together = np.asarray(_sum_for(tensor, back))
            gathered.setdefault(name, []).append(together)
            if not back.node.equation.moves:
                numbers += _gradient_numbers(back, slot, name, together, trace)
            if np.ndim(together):
                results.append((f"∂{name}", grid(together)))
        listing = listings()[back.node.equation.name]
        title = Words(f"Derivative: {listing.title.en}", f"导数：{listing.title.zh}")
        steps.append(
            Step(
                title,
                with_inputs(
                    listing.derivative_formula,
                    back.node.equation,
                    tuple(map(trace.name, back.node.inputs)),
                    *_cotangents(back, trace),
                ),
                str(listing.derivative),
                tuple(numbers),
                tuple(results),
                stem=listing.name,
                is_derivative=True,
                goal=_goal([f"∂{name}" for name in trace.result_names(back.node)], wanted),
                why=ENTRIES[listing.name].why_back,
            )
        )
    for name, parts in gathered.items():
        steps += _total_step(name, parts)
    return steps


def _goal(known: list[str], wanted: list[str]) -> Words:
    """Return what a step on the way back is for."""
    return Words(
        f"From {', '.join(known)} to {', '.join(wanted)}: how the loss changes with each input.",
        f"由 {'、'.join(known)} 求 {'、'.join(wanted)}：损失如何随各个输入变化。",
    )


def _cotangents(back: BackwardStep, trace: Trace) -> list[tuple[str, str]]:
    """Return the letter of each result's gradient with the name that it has here."""
    equation = back.node.equation
    letters = [plain(symbol.latex) for symbol in equation.results]
    if equation.results[0].latex in (symbol.latex for symbol in equation.inputs):
        letters = [f"{letters[0]}_out"]  # the residual stream is X before and after
    names = trace.result_names(back.node)
    return [(f"∂{letter}", f"∂{name}") for letter, name in zip(letters, names, strict=True)]


def _sum_for(tensor: Tensor, back: BackwardStep) -> Any:
    """Add what one application hands back to a tensor that may stand in several of its places (x + x)."""
    first, *others = [
        d for t, d in zip(back.node.inputs, back.d_inputs, strict=True) if t is tensor and d is not None
    ]
    return sum(others, first)


def _gradient_numbers(back: BackwardStep, slot: int, name: str, d: np.ndarray, trace: Trace) -> Iterator[Number]:
    """Yield every element of the gradient of one input: the derivative's own arithmetic, or contributions."""
    data = tuple(t.data for t in back.node.inputs)
    plain_data = floats(data)
    stem = back.node.equation.name
    d_result = np.asarray(back.d_results[0], dtype=np.float64)
    seen: set[Any] = set()
    for index in np.ndindex(*d.shape):
        term = back.gradient_term(slot, index)
        if term is not None:
            leaf = leaf_text(data)
            yield from defined(stem, term, leaf, data, index, seen)
            text, letters = arithmetic.expression(term, leaf), ""
        else:
            found = list(contributions(back, back.node.inputs[slot], index, trace.result_names(back.node)))
            term = total(product((number(c.cotangent), number(c.slope))) for c in found)
            text, letters = _shared(found, written(name, index))
        asked = Asked(index, plain_data, back.node.static, d_result, slot)
        wrong = tuple(mistakes(ENTRIES[stem].gradient_mistakes, term, asked))
        yield Number(written(f"∂{name}", index), text, float(d[index]), form(d[index]), wrong, letters)


def _shared(found: list[Contribution], target: str) -> tuple[str, str]:
    """Write a sum of cotangents times slopes, in numbers and in letters; of a long one its ends."""
    numbers = [f"{factor(s.cotangent)} × {factor(s.slope)}" for s in found]
    letters = [f"{written('∂' + s.name, s.index)} × ∂{written(s.name, s.index)}/∂{target}" for s in found]
    if len(found) > MANY:
        numbers, letters = ([*parts[:2], "…", parts[-1]] for parts in (numbers, letters))
    return " + ".join(numbers) or "0", " + ".join(letters)


def _total_step(name: str, parts: list[np.ndarray]) -> list[Step]:
    """Return the step that adds the gradients which reached a tensor on several ways; none for a single way."""
    if len(parts) < 2:
        return []
    total = sum(parts[1:], parts[0])
    numbers = tuple(
        Number(
            written(f"∂{name}", index),
            " + ".join(factor(part[index]) for part in parts),
            float(total[index]),
            form(total[index]),
            (Mistake("forgot one of the ways", "漏掉了其中一路", float(parts[-1][index])),),
        )
        for index in np.ndindex(*total.shape)
    )
    title = Words(f"Both ways to {name} add up", f"{name} 的各路梯度相加")
    place = listings()["backward"]
    return [
        Step(
            title,
            Words("d_x = sum over uses of x of the vjp of each use", "∂x = x 的各次使用传回的梯度之和"),
            str(place.forward),
            numbers,
            ((f"∂{name}", grid(total)),),
            goal=Words(f"Add up what each use of {name} passed back.", f"把 {name} 各次使用传回的导数加起来。"),
            why=Words(
                f"A change of {name} reaches the loss through every use at once, and small changes add up.",
                f"{name} 一变，就同时经由各次使用影响损失，这些影响相加。",
            ),
        )
    ]
