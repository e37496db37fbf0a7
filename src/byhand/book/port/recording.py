"""A pass and the step after it as arrays in a folder, in the order in which they are computed, for a port to compare.

    index.txt    `byhand-trace TYPE COUNT OF`, then a line for each array: name, count, shape (2x6x8), equation,
                 what it reads, norm; words without blanks, - for none and for the shape of a number
    arrays.bin   their numbers, one array after the other, row by row, little-endian; NaN where a port may have
                 anything, such as scores of keys that a query does not see
    arrays.npz   the same for NumPy
    config.json  the model's settings

Names are those of `explain`. Before a slash stands what kind of array it is: `grad/` a gradient of the loss, `m/` and
`v/` (the optimizer's own names) the moments after a step, `new/` the parameter after it. `gradient_norm` is that of
all parameters together, before clipping.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from byhand.config import ModelConfig, from_dict, to_dict
from byhand.equations.causal_softmax import visible
from byhand.errors import ByhandError, DataError, NonFiniteError, brief, reason, suggestion
from byhand.files.reading import SMALL, parse_json, read_regular
from byhand.files.writing import create_all, remedy, remove_left_over
from byhand.optim import as_tuple
from byhand.tracing.non_finite import non_finite_gradient, non_finite_value
from byhand.tracing.questions import Questions

INDEX, NUMBERS, CONFIG = "index.txt", "arrays.bin", "config.json"
MARK, NONE = "byhand-trace", "-"
FIRST = re.compile(rf"{MARK} (float32|float64) ([0-9]{{1,8}}) (\S+)")
LARGEST_INDEX = 64 * SMALL
GRAD, NEW = "grad/", "new/"


@dataclass(frozen=True, eq=False)
class Recorded:
    """One array: its name, its numbers (NaN where it is not compared), what made it, and what that read."""

    name: str
    array: np.ndarray
    equation: str = ""
    inputs: tuple[str, ...] = ()

    def line(self) -> str:
        """Return its line of the index."""
        shape = "x".join(map(str, self.array.shape)) or NONE
        norm = math.sqrt(float(np.nansum(np.square(self.array, dtype=np.float64))))
        return (
            f"{self.name} {self.array.size} {shape} {self.equation or NONE} {','.join(self.inputs) or NONE} {norm!r}"
        )


@dataclass(frozen=True, eq=False)
class Recording:
    """The arrays in the order of the computation, the model's settings, and what it is of, such as gpt."""

    of: str
    config: ModelConfig
    arrays: Sequence[Recorded]

    @cached_property
    def by_name(self) -> dict[str, Recorded]:
        """The arrays by name."""
        return {each.name: each for each in self.arrays}

    def named(self, name: str) -> Recorded:
        """Return an array; DataError if there is none of this name."""
        if name not in self.by_name:
            raise DataError(f"this trace has no array {name[:80]!r}. {suggestion(name[:80], self.by_name)}")
        return self.by_name[name]


def recorded(questions: Questions, of: str = "") -> Recording:
    """Return the arrays of a pass with a loss, of the way back and of the step behind it."""
    unsound = non_finite_value(questions.trace.result) or non_finite_gradient(questions.gradients.steps)
    if unsound:
        raise NonFiniteError(f"with this model {unsound} is not finite. Use an earlier checkpoint of the run.")
    arrays = [*_forward(questions), *_back(questions), *_step(questions)]
    unseen = _unseen(questions)
    blanked = [
        Recorded(each.name, np.where(unseen[each.name], np.nan, each.array), each.equation, each.inputs)
        if each.name in unseen
        else each
        for each in arrays
    ]
    return Recording(of or NONE, questions.model.config, blanked)


def _forward(questions: Questions) -> Iterator[Recorded]:
    trace = questions.trace
    for name in ("tokens", "targets"):
        yield Recorded(name, np.asarray(trace.tensor(name).data))
    for name, parameter in questions.model.parameters().items():
        yield Recorded(name, np.asarray(parameter.data))
    for name, (use, which) in trace.made.items():
        inputs = tuple(map(trace.name, use.inputs))
        yield Recorded(name, np.asarray(use.results[which].data), use.equation.name, inputs)


def _back(questions: Questions) -> Iterator[Recorded]:
    """Yield each gradient where its last addend is known."""
    trace, found = questions.trace, questions.gradients
    equations, inputs = dict[str, list[str]](), dict[str, tuple[str, ...]]()
    for step in found.steps:
        results = tuple(f"{GRAD}{name}" for name in trace.result_names(step.node))
        for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
            if d is not None and tensor.requires_grad:  # what needs none may have a part of one
                name = trace.name(tensor)
                equations[name] = [*equations.pop(name, []), f"{step.node.equation.name}.vjp"]
                inputs[name] = inputs.get(name, ()) + results
    for name, made in equations.items():
        yield Recorded(f"{GRAD}{name}", np.asarray(found.by_name[name]), "+".join(dict.fromkeys(made)), inputs[name])


def _step(questions: Questions) -> Iterator[Recorded]:
    optimizer, clipping, found = questions.optimizer, questions.clipping, questions.gradients.by_name
    learnt = {name: p for name, p in questions.model.parameters().items() if p.requires_grad and name in found}
    dtype = questions.trace.result.dtype
    yield Recorded("gradient_norm", np.asarray(clipping.norm, dtype), "", tuple(f"{GRAD}{name}" for name in learnt))
    for name, parameter in learnt.items():
        rule, inputs = optimizer.application(name, parameter, clipping.clipped(found[name]))
        made = as_tuple(rule.equation.forward(*inputs.values(), **rule.static)[0])
        for kind, array in [*zip(rule.state, made[1:], strict=True), (NEW[:-1], made[0])]:
            yield Recorded(f"{kind}/{name}", np.asarray(array), rule.equation.name, (name, f"{GRAD}{name}"))


def _unseen(questions: Questions) -> dict[str, np.ndarray]:
    """Return by name where arrays belong to keys that a query does not see: no result depends on them."""
    found = {}
    for use in questions.trace.applications:
        if use.equation.name in ("causal_softmax", "window_softmax"):
            scores, weights = map(questions.trace.name, (use.inputs[0], use.results[0]))
            hidden = ~visible(*(np.asarray(x.data) for x in use.inputs), **use.static)
            found |= dict.fromkeys((scores, f"{GRAD}{scores}", f"{GRAD}{weights}"), hidden)
    return found


def write(recording: Recording, folder: Path, dtype: str) -> int:
    """Write a recording into a new or empty folder, all of its files or none; return the count of its numbers."""
    # Token ids too are of this type: a reader then needs one.
    arrays = {each.name: np.ascontiguousarray(each.array, dtype) for each in recording.arrays}
    lines = [f"{MARK} {dtype} {len(arrays)} {recording.of}", *(each.line() for each in recording.arrays)]
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # pyright: ignore[reportArgumentType]  (names are those of its arrays)
    numbers = (array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays.values())
    contents = [
        (INDEX, ("\n".join(lines) + "\n").encode()),
        (NUMBERS, numbers),
        ("arrays.npz", packed.getvalue()),
        (CONFIG, json.dumps(to_dict(recording.config), indent=1).encode()),
    ]
    require_empty(folder)
    try:
        create_all(folder, contents)
    except OSError as error:
        raise DataError(f"cannot write {error.filename}: {reason(error)}. {remedy(error, 'trace again')}") from None
    return sum(array.size for array in arrays.values())


def require_empty(folder: Path) -> None:
    """Make a folder if it is missing; DataError if it holds anything, or cannot be used."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_left_over(folder)
        taken = sorted(path.name for path in folder.iterdir())
    except (OSError, ValueError) as error:
        said = reason(error) if isinstance(error, OSError) else brief(error)
        raise DataError(f"cannot use {folder}: {said}. Choose another folder with --out.") from None
    if taken:
        raise DataError(f"{folder} holds {taken[0]!r}. Choose a new or empty folder with --out.")


def read(folder: Path) -> Recording:
    """Return the recording in a folder; DataError in one line if it is none, or damaged."""
    try:
        head, *lines = read_regular(folder / INDEX, LARGEST_INDEX).decode("ascii").split("\n")
        if (found := FIRST.fullmatch(head)) is None:
            raise ValueError(f"the first line of {INDEX} is not that of a trace")
        dtype, count, of = found.groups()
        if len(lines) <= int(count):
            raise ValueError(f"{INDEX} is cut off: it has {max(len(lines) - 1, 0)} of {count} lines")
        rows = [_row(line) for line in lines[:-1]]
        if int(count) != len(rows) or len({row[0] for row in rows}) < len(rows):
            raise ValueError(f"{INDEX} names more arrays than its first line, or one twice")
        kind = np.dtype(dtype).newbyteorder("<")
        total = sum(math.prod(shape) for _, shape, _, _ in rows)
        numbers = read_regular(folder / NUMBERS, total * kind.itemsize)
        if len(numbers) < total * kind.itemsize:
            raise ValueError(f"{NUMBERS} has {len(numbers):,} of {total * kind.itemsize:,} bytes")
        config = from_dict(ModelConfig, parse_json(read_regular(folder / CONFIG, SMALL)), CONFIG)
        flat = np.split(np.frombuffer(numbers, kind), np.cumsum([math.prod(shape) for _, shape, _, _ in rows])[:-1])
        arrays = [Recorded(row[0], part.reshape(row[1]), *row[2:]) for row, part in zip(rows, flat, strict=True)]
    except OSError as error:
        hint = "Write a trace with `byhand trace`."
        raise DataError(f"cannot read {error.filename}: {reason(error)}. {hint}") from None
    except (ValueError, TypeError, AttributeError, OverflowError, ByhandError) as error:
        raise DataError(
            f"{folder} is not a whole trace: {brief(error)}. Write it again with `byhand trace`."
        ) from None
    return Recording(of, config, arrays)


def _row(line: str) -> tuple[str, tuple[int, ...], str, tuple[str, ...]]:
    name, count, shape, equation, inputs, _ = line.split(" ")
    sizes = () if shape == NONE else tuple(map(int, shape.split("x")))
    if min(sizes, default=0) < 0 or math.prod(sizes) != int(count):
        raise ValueError(f"the sizes of {name[:80]!r} do not agree")
    plain = {NONE: ""}
    read = plain.get(inputs, inputs)
    return name, sizes, plain.get(equation, equation), tuple(read.split(",")) if read else ()
