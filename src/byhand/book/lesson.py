"""Lessons: a computation as numbered steps that can be done on paper, generated from what was recorded.

Forward steps come from the equations' terms, backward steps from their derivatives, one share at a time. Nothing
here is typed by hand; a lesson of other weights is the same code with other weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.book import arithmetic
from byhand.book.exact import Exact
from byhand.book.index import entries
from byhand.book.misconceptions import Mistake, backward_mistakes, forward_mistakes, label_mistakes
from byhand.book.shares import shares
from byhand.book.watch import Application, Watched
from byhand.engine import Step as BackStep
from byhand.engine import Tensor, walk_back
from byhand.engine.terms import Index, Term
from byhand.equations import adamw

COPIES = ("reshape", "transpose", "split_qkv", "merge_heads")  # no arithmetic: only the result is shown
LONGEST_FORM = 24  # characters; longer fractions are no easier to read than a decimal
MANY = 6  # a sum of more shares is shown by its first and last ones
NOTHING = 1e-14


@dataclass(frozen=True)
class Words:
    """The same words in both languages."""

    en: str
    zh: str

    def said(self, lang: str) -> str:
        """Return them in `en` or `zh`."""
        return self.zh if lang == "zh" else self.en


Said = str | Words  # text that is the same in both languages, or not


def say(text: Said, lang: str) -> str:
    """Return text in `en` or `zh`."""
    return text.said(lang) if isinstance(text, Words) else text


@dataclass(frozen=True)
class Number:
    """One number to work out: its name, the arithmetic with the numbers put in, the value, known wrong turns."""

    label: Said
    expression: Said
    value: float
    exact: str = ""
    mistakes: tuple[Mistake, ...] = ()
    letters: str = ""

    @property
    def shown(self) -> str:
        """The value as it is printed: exact where it has a form, six digits otherwise."""
        return self.exact or _decimal(self.value)


@dataclass(frozen=True)
class Step:
    """One equation applied, or one derivative: what it says, where its code is, its numbers, and the whole result."""

    title: Words
    formula: Said
    where: str
    numbers: tuple[Number, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    stem: str = ""


@dataclass(frozen=True)
class Lesson:
    """A worked example from beginning to end."""

    name: str
    title: Words
    intro: Words
    steps: tuple[Step, ...]


def number_text(x: Any) -> str:
    """Write a number of an array: as its form where it has one, else with six digits."""
    return _form(x) or _decimal(float(x))


def _decimal(value: float) -> str:
    """Write six digits; what only rounding has left over is zero."""
    return "0" if abs(value) < NOTHING else arithmetic.decimal(value)


def forward_steps(watched: Watched, names: Callable[[str], bool] = lambda name: True) -> list[Step]:
    """Return a step for each application whose (first) result's name is wanted."""
    return [
        forward_step(application, watched)
        for application in watched.applications
        if names(_names(application, watched)[0])
    ]


def forward_step(application: Application, watched: Watched) -> Step:
    """Return one application as a step: every element of its results."""
    stem = application.equation.name
    entry = entries()[stem]
    names = _names(application, watched)
    seen: set[tuple[str, tuple[Any, ...]]] = set()
    numbers: list[Number] = []
    if stem not in COPIES:
        for index in np.ndindex(*application.results[0].shape):
            numbers += _numbers(application, names[0], index, seen)
    results = tuple((n, grid(t.data)) for n, t in zip(names, application.results, strict=True) if t.data.ndim)
    return Step(
        Words(entry.title, entry.title_zh), entry.plain, str(entry.forward), tuple(numbers), results, stem=stem
    )


def _names(application: Application, watched: Watched) -> tuple[str, ...]:
    return tuple(watched.name(t) for t in application.results)


def _numbers(application: Application, name: str, index: Index, seen: set[Any], which: int = 0) -> Iterator[Number]:
    """Yield the labelled parts that this element needs and no earlier one did, then the element itself."""
    data = tuple(t.data for t in application.inputs)
    result = application.results[which].data
    asked = {"which": which} if len(application.results) > 1 else {}
    term = application.equation.terms(index, data, result, **application.static, **asked)
    leaf = leaf_text(data)
    place = written(name, index)
    for line in arithmetic.definitions(term, leaf):
        key = (line.label, tuple(part.source for part in arithmetic.leaves(line.term)))
        if key not in seen and line.term.op != "max":
            seen.add(key)
            rows = application.equation.name == "layer_norm" and line.label in ("mean", "var")
            yield Number(
                line.label if "[" in line.label else written(line.label, index[:-1] if rows else index),
                line.expression,
                line.term.value,
                _form(term_value(line.term, data)),
                tuple(label_mistakes(line.term)),
                arithmetic.expression(line.term, arithmetic.letter),
            )
    floats = tuple(np.asarray(x, dtype=np.float64) if x.dtype.kind == "O" else x for x in data)
    mistakes = forward_mistakes(application.equation.name, floats, index, application.static) if which == 0 else []
    yield Number(
        place,
        arithmetic.expression(term, leaf),
        float(result[index]),
        _form(result[index]),
        tuple(mistakes),
        arithmetic.expression(term, arithmetic.letter),
    )


def leaf_text(data: tuple[Any, ...]) -> arithmetic.Leaf:
    """Return how to write a leaf of a term: as the input's number, in its exact form where arrays hold forms."""
    exact = any(x.dtype.kind == "O" for x in data if hasattr(x, "dtype"))

    def leaf(term: Term) -> str:
        if term.source is not None:
            which, index = term.source
            return number_text(data[which][index])
        return number_text(Exact.of(term.value)) if exact else arithmetic.decimal(term.value)

    return leaf


def term_value(term: Term, data: tuple[Any, ...]) -> Any:
    """Return a term's value, worked exactly where the inputs are exact."""
    if not any(x.dtype.kind == "O" for x in data if hasattr(x, "dtype")):
        return term.value
    if term.source is not None:
        return Exact.of(data[term.source[0]][term.source[1]])
    if not term.parts:
        return Exact.of(term.value)
    parts = [term_value(part, data) for part in term.parts]
    match term.op:
        case "sum":
            return sum(parts, Exact.fraction(0))
        case "product":
            result = Exact.fraction(1)
            for part in parts:
                result = result * part
            return result
        case "ratio":
            return parts[0] / parts[1]
        case "negative":
            return -parts[0]
        case "square":
            return parts[0] * parts[0]
        case "exp" | "log" | "sqrt" | "tanh":
            return getattr(parts[0], term.op)()
        case _:
            return Exact(term.value)


def backward_steps(loss: Tensor, watched: Watched, d_loss: Any = None) -> list[Step]:
    """Return a step for each application on the way back, with sums where a tensor was used more than once."""
    one = np.ones(loss.shape, dtype=loss.dtype) if d_loss is None else d_loss
    gathered: dict[str, list[np.ndarray]] = {}
    steps: list[Step] = []
    for back in walk_back(loss, one):
        for name in watched.result_names(back.node):
            steps += _total_step(name, gathered.pop(name, []))
        numbers: list[Number] = []
        results: list[tuple[str, str]] = []
        done: set[int] = set()
        for slot, (tensor, d) in enumerate(zip(back.node.inputs, back.d_inputs, strict=True)):
            if d is None or not tensor.requires_grad or id(tensor) in done:
                continue
            done.add(id(tensor))
            name = watched.name(tensor)
            together = np.asarray(_sum_for(tensor, back))
            gathered.setdefault(name, []).append(together)
            if back.node.equation.name not in COPIES:
                numbers += _gradient_numbers(back, slot, name, together, watched)
            if np.ndim(together):
                results.append((f"∂{name}", grid(together)))
        entry = entries()[back.node.equation.name]
        title = Words(f"Derivative: {entry.title}", f"导数：{entry.title_zh}")
        steps.append(
            Step(
                title, entry.plain_derivative, str(entry.derivative), tuple(numbers), tuple(results), stem=entry.name
            )
        )
    for name, parts in gathered.items():
        steps += _total_step(name, parts)
    return steps


def _sum_for(tensor: Tensor, back: BackStep) -> Any:
    """Add what one application hands back to a tensor that may stand in several of its places (x + x)."""
    first, *others = [
        d for t, d in zip(back.node.inputs, back.d_inputs, strict=True) if t is tensor and d is not None
    ]
    return sum(others, first)


def _gradient_numbers(back: BackStep, slot: int, name: str, d: np.ndarray, watched: Watched) -> Iterator[Number]:
    tensor = back.node.inputs[slot]
    floats = tuple(
        np.asarray(t.data, dtype=np.float64) if t.data.dtype.kind == "O" else t.data for t in back.node.inputs
    )
    d_result = np.asarray(back.d_results[0], dtype=np.float64)
    for index in np.ndindex(*d.shape):
        found = list(shares(back, tensor, index, watched))
        products = [f"{_factor(s.cotangent)} × {_factor(s.slope)}" for s in found]
        text = (
            " + ".join(products)
            if 0 < len(products) <= MANY
            else f"sum of {len(products)} shares"
            if products
            else "0"
        )
        mistakes = backward_mistakes(back.node.equation.name, floats, d_result, slot, index, back.node.static)
        letters = " + ".join(f"{written('∂' + s.name, s.index)} × slope" for s in found)
        yield Number(written(f"∂{name}", index), text, float(d[index]), _form(d[index]), tuple(mistakes), letters)


def _factor(x: Any) -> str:
    text = number_text(x)
    return f"({text})" if " " in text or text.startswith("−") else text


def _total_step(name: str, parts: list[np.ndarray]) -> list[Step]:
    """Return the step that adds the gradients which reached a tensor on several ways; none for a single way."""
    if len(parts) < 2:
        return []
    total = sum(parts[1:], parts[0])
    numbers = tuple(
        Number(
            written(f"∂{name}", index),
            " + ".join(_factor(part[index]) for part in parts),
            float(total[index]),
            _form(total[index]),
            (Mistake(float(parts[-1][index]), "forgot one of the ways", "漏掉了其中一路"),),
        )
        for index in np.ndindex(*total.shape)
    )
    title = Words(f"Both ways to {name} add up", f"{name} 的各路梯度相加")
    entry = entries()["backward"]
    return [
        Step(
            title,
            "d_x = sum over uses of x of the vjp of each use",
            str(entry.forward),
            numbers,
            ((f"∂{name}", grid(total)),),
        )
    ]


def update_step(
    name: str, before: Any, gradient: Any, m: Any, v: Any, lr: float, t: int, **static: float
) -> tuple[Step, Any]:
    """Return one AdamW step of one parameter, and the new parameter with its moments."""
    results, _ = adamw.forward(before, gradient, m, v, lr, t, **static)
    inputs = (
        Tensor(before, name=name),
        *(Tensor(x, name=n) for x, n in ((gradient, f"∂{name}"), (m, "m"), (v, "v"))),
        Tensor(np.asarray(lr, dtype=before.dtype) if before.dtype.kind != "O" else _scalar(lr), name="lr"),
        Tensor(t, name="t"),
    )
    application = Application(0, name, adamw, inputs, static, tuple(Tensor(r) for r in results))
    entry = entries()["adamw"]
    seen: set[Any] = set()
    numbers = [n for index in np.ndindex(*before.shape) for n in _numbers(application, f"{name}'", index, seen)]
    title = Words(f"AdamW, step {t}: {name}", f"AdamW 第 {t} 步：{name}")
    step = Step(
        title, entry.plain, str(entry.forward), tuple(numbers), ((f"{name}'", grid(results[0])),), stem="adamw"
    )
    return step, results


def _scalar(x: float) -> np.ndarray:
    array = np.empty((), dtype=object)
    array[()] = Exact.of(x)
    return array


def _form(x: Any) -> str:
    """Write a number in its form if it has one that fits on paper."""
    text = str(x) if isinstance(x, Exact) and x.form is not None else ""
    return text if len(text) <= LONGEST_FORM else ""


def grid(x: Any) -> str:
    """Return an array as nested rows: `[[1, 1/2], [0, −1]]`."""
    array = np.asarray(x)
    if array.ndim == 0:
        return number_text(array[()])
    return "[" + ", ".join(grid(row) for row in array) + "]"


def difference(a: Any, b: Any) -> str:
    """Return a − b as text."""
    return f"{number_text(a)} − {_factor(b)}"


def written(name: str, index: Index) -> str:
    """Return an element's name with its index."""
    return f"{name}[{','.join(map(str, index))}]" if index else name
