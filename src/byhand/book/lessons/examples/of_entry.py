"""An equation applied to the worked numbers of its entry, forward and back, if no other example is named so."""

from __future__ import annotations

from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.examples.single import single, walked
from byhand.book.lessons.lesson import Content, Maker
from byhand.book.numbers import closed_form
from byhand.book.words.language import Words
from byhand.engine import Tensor, registry
from byhand.tracing.trace import Trace


def lesson(stem: str, array: Maker) -> Content:
    """The first result of the equation, and the gradients of its inputs."""
    entry, equation = ENTRIES[stem], registry[stem]
    tensors = [
        Tensor(array(numbers), requires_grad=True, name=name)
        if name in entry.gradients
        else Tensor(closed_form.array(numbers, integers=True), name=name)
        for name, numbers in entry.inputs.items()
    ]
    name = equation.results[0].name
    name += "'" if name in entry.inputs else ""
    trace = Trace.of(lambda: _first(equation(*tensors, name=name, **entry.static)))
    return single(Words(entry.note, entry.note_zh), walked(trace, array(closed_form.several(entry.d_result)[0])))


def _first(result):
    return result[0] if isinstance(result, tuple) else result
