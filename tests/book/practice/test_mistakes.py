"""Typical mistakes: the wrong number of every element, held against numbers that array arithmetic once gave."""

import json
from pathlib import Path

import numpy as np
import pytest

import byhand.book.entries  # noqa: F401 - fills the entries
import equations
from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_step
from byhand.book.numbers import arithmetic
from byhand.book.numbers.closed_form import array
from byhand.book.practice.edits import Asked, mistakes, within
from byhand.engine import Equation, Tensor, registry
from byhand.equations import cross_entropy, layer_norm, softmax
from byhand.tracing.trace import Trace
from every import every

RECORD = Path(__file__).with_name("wrong_numbers.json")


def wave(*shape):
    """Return numbers of every size and sign that are the same on every machine, up to the last bit."""
    return 1.5 * np.sin(1.7 * np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) ** 1.1 + len(shape))


DECAY = {"beta1": 0.8, "beta2": 0.9, "eps": 0.01, "weight_decay": 0.3}
SMALL = {
    "embedding": ((wave(3, 2), np.asarray([[2, 0], [1, 1]])), {}),
    "add_positional": ((wave(2, 2, 2), wave(3, 2), np.asarray(1)), {}),
    "layer_norm": ((wave(2, 4),), {"eps": 0.1}),
    "layer_norm, one column": ((wave(2, 1),), {"eps": 0.1}),
    "residual": ((wave(2, 2), wave(2, 2) ** 2), {}),
    "linear, square": ((wave(1, 2, 3), wave(3, 3), wave(3)), {}),
    "linear, as many rows as inputs": ((wave(2, 2), wave(2, 3)), {}),
    "linear, one row": ((wave(1, 2), wave(2, 3), wave(3)), {}),
    "matmul, square": ((wave(2, 2, 2), wave(2, 2, 2) ** 2), {}),
    "matmul, oblong": ((wave(1, 3), wave(3, 2)), {}),
    "attention_scores, square": ((wave(1, 2, 2, 2), wave(1, 2, 2, 2) ** 2), {}),
    "attention_scores, oblong": ((wave(1, 1, 2, 3), wave(1, 1, 3, 3)), {}),
    "causal_softmax": ((wave(1, 1, 3, 3),), {}),
    "causal_softmax, oblong": ((wave(1, 1, 2, 4),), {}),
    "softmax": ((wave(2, 3),), {}),
    "softmax, one row": ((wave(3),), {}),
    "mix, square": ((wave(1, 1, 2, 2), wave(1, 1, 2, 3)), {}),
    "mix, oblong": ((wave(1, 1, 2, 3), wave(1, 1, 3, 2)), {}),
    "gelu": ((wave(5),), {}),
    "relu": ((wave(5),), {}),
    "cross_entropy": ((wave(2, 2, 3), np.asarray([[2, 0], [1, 1]])), {}),
    "adamw": ((wave(2), wave(2, 1)[:, 0], wave(2) ** 3, wave(2) ** 2, np.asarray(0.1), np.asarray(3)), DECAY),
    "temperature": ((wave(3),), {"tau": 0.7}),
    "top_k": ((wave(2, 3),), {"k": 2}),
    "mul": ((wave(2, 2), wave(2)), {}),
    "add": ((wave(2, 2), wave(2)), {}),
}


def worked():
    """Return the worked numbers of every equation that has an entry; test_pages.py names the others."""
    for stem, equation in registry.items():
        if isinstance(equation, Equation) and (example := ENTRIES.get(stem)):
            inputs = tuple(array(x, n not in example.gradients) for n, x in example.inputs.items())
            yield stem, (inputs, example.static)


CASES = {f"{stem}, worked": case for stem, case in worked()} | SMALL
STEMS = {case.partition(",")[0] for case in json.loads(RECORD.read_text("utf-8"))["numbers"]}
RECORDED = [case for case in CASES if case.partition(",")[0] in STEMS]


def asked(case):
    """Return every number of a case that has mistakes or could have, forward and then back."""
    equation = registry[case.partition(",")[0]]
    arrays, static = CASES[case]
    tensors = [Tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]
    trace = Trace.of(lambda: equation(*tensors, **static))
    numbers = [*forward_step(trace.applications[0], trace).numbers]
    if not isinstance(trace.result, tuple):
        steps = backward_steps(trace, np.cos(wave(*trace.result.shape)))
        numbers += [n for step in steps for n in step.numbers]
    return numbers


@every(RECORDED)
def test_a_mistake_leads_to_the_wrong_number_it_is_known_by(case):
    found = [{m.en: m.value for m in number.mistakes} for number in asked(case)]
    for new, old in zip(found, json.loads(RECORD.read_text("utf-8"))["numbers"][case], strict=True):
        assert new == pytest.approx(old, rel=1e-12, abs=1e-14)


@every(sorted({case.partition(",")[0] for case in CASES} - STEMS))
def test_an_equation_that_is_not_in_the_record_checks_its_own_mistakes(stem):
    test = Path(equations.__file__).with_name(f"test_{stem}.py")
    checks = test.is_file() and "wrong_numbers(" in test.read_text("utf-8")
    assert checks or not ENTRIES[stem].mistakes, f"hold its typical mistakes by wrong_numbers() in {test.name}"


def test_the_words_of_a_mistake_stay():
    said = {m.en: m.zh for case in RECORDED for number in asked(case) for m in number.mistakes}
    assert said == json.loads(RECORD.read_text("utf-8"))["words"]


@every(CASES)
def test_a_wrong_number_has_arithmetic_that_adds_up_to_it(case):
    for number in asked(case):
        for mistake in number.mistakes:
            assert arithmetic.reworked(mistake.term, lambda part: None) == pytest.approx(mistake.value, abs=1e-14)
            assert arithmetic.expression(mistake.term)


def test_many_targets_share_the_right_terms():
    """A wrong term is new above its edit only, and no deeper than the right one by more than a few parts."""
    arrays = wave(100, 20), np.arange(100) % 20
    right = cross_entropy.terms((), arrays, None)
    there = {id(part) for part in parts_of(right)}
    for mistake in mistakes(ENTRIES["cross_entropy"].mistakes, right, Asked((), arrays)):
        assert len({id(part) for part in parts_of(mistake.term)} - there) <= 2 * 100 + 6


def test_a_part_that_stands_in_many_places_is_edited_once():
    x = wave(1, 50)
    right = layer_norm.terms((0, 3), (x,), None)
    calls = []
    wrong = within(lambda mean, at: calls.append(mean) or mean.parts[0], "mean")(right, Asked())
    assert len(calls) == 1
    assert wrong.value != right.value
    assert len({id(part) for part in parts_of(wrong)}) == len({id(part) for part in parts_of(right)}) - 2


def test_no_mistake_where_the_arithmetic_has_no_value():
    """Scores whose sum is 0 are not divided by it."""
    for row in ([0.0, 0.0], [1.0, -1.0]):
        x = np.asarray(row)
        made = mistakes(ENTRIES["softmax"].mistakes, softmax.terms((0,), (x,), None), Asked((0,), (x,)))
        assert [m.en for m in made] == ["forgot to divide by the sum"]


def test_gain_and_bias_follow_a_wrong_deviation():
    x, gain, bias = wave(1, 3), wave(3), wave(3) ** 2
    plain, scaled = (
        mistakes(ENTRIES["layer_norm"].mistakes, layer_norm.terms((0, 1), inputs, None), Asked((0, 1), inputs))
        for inputs in ((x,), (x, gain, bias))
    )
    assert [m.value for m in scaled] == pytest.approx([gain[1] * m.value + bias[1] for m in plain])


def parts_of(term):
    """Return a term and every part of it, each once."""
    found = {id(term): term}
    for part in term.parts:
        if id(part) not in found:
            found |= {id(p): p for p in parts_of(part)}
    return list(found.values())


def record():
    """Write down what the mistakes are now; `python tests/book/practice/test_mistakes.py` after a wanted change."""
    numbers = {case: [{m.en: m.value for m in n.mistakes} for n in asked(case)] for case in RECORDED}
    words = {m.en: m.zh for case in RECORDED for n in asked(case) for m in n.mistakes}
    lines = ",\n".join(
        f"{json.dumps(case)}: {json.dumps(made, ensure_ascii=False)}" for case, made in numbers.items()
    )
    said = json.dumps(words, ensure_ascii=False, indent=0)
    RECORD.write_text(f'{{"words": {said},\n"numbers": {{\n{lines}\n}}}}\n', "utf-8")


if __name__ == "__main__":
    record()
