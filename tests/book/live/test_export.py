"""What is exported to the pages gives the lessons' numbers, also where other numbers are given."""

import math
from functools import cache

import numpy as np
import pytest

from book.live.working import registers, worked
from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.examples import TITLES
from byhand.book.numbers import closed_form
from live.entries import graph_of_entry
from live.export import as_json
from live.pages import graph_of
from live.working import graph

WORKED = [f"worked-{stem}" for stem in ENTRIES]
EDITED = ("matrix-core", "matrix-core-rows", "matrix-core-exercise", "paper-gpt", "classifier", "rotary")


def other(nested):
    exact = closed_form.array(nested)
    return exact + 0.01 * np.random.default_rng(list(str(nested).encode())).standard_normal(exact.shape)


def close(name, a, b):
    return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15)


exported = cache(lambda name: as_json(graph_of(name), "en"))


@pytest.mark.parametrize("name", [*TITLES, *WORKED])
def test_it_gives_the_lessons_numbers(name):
    data = exported(name)
    numbers = list(map(float, data["values"]))
    for cell, value in enumerate(worked(data, numbers)):
        assert close(name, value, numbers[cell]), cell


@pytest.mark.parametrize("name", TITLES)
def test_every_number_of_a_pass_has_its_place(name):
    data = exported(name)
    numbers = list(map(float, data["values"]))
    for step, link in zip(data["steps"], graph_of(name).links, strict=True):
        for label, value, cell, register, _ in step["numbers"] if link.makes else ():
            assert cell >= 0, label
            own = numbers[cell] if register < 0 else registers(data, cell, numbers)[register]
            assert close(name, own, float(value)), label


@pytest.mark.parametrize("name", EDITED)
def test_it_gives_the_numbers_of_other_given_ones(name):
    data, expected = exported(name), graph(name, other).numbers
    given = [None if program else number for program, number in zip(data["programs"], expected, strict=True)]
    for cell, value in enumerate(worked(data, given)):
        assert close(name, value, expected[cell]), cell
    free = [a for a in data["arrays"] if a[3] == "free"]
    assert free
    assert any(not math.isclose(a, float(b)) for a, b in zip(expected, data["values"], strict=True))


@pytest.mark.parametrize("size", [3, pytest.param(0.01, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WORKED)
def test_what_may_be_given_to_an_equation_reaches_all_its_numbers(name, size):
    """An array that is saved without its terms, or a choice that the arithmetic has made, would keep the old ones."""

    def moved(nested):
        exact = closed_form.array(nested)
        drawn = np.random.default_rng(list(str(nested).encode()))
        return exact * np.exp(size * drawn.uniform(-0.5, 0.5, exact.shape)) + 0.01 * drawn.uniform(size=exact.shape)

    own, data = graph_of(name), exported(name)
    if not (free := [array for array in own.arrays if array.is_free]):
        return
    numbers, expected = own.numbers, graph(name, moved).numbers
    for array in free:
        cells = slice(array.first, array.first + array.data.size)
        numbers[cells] = expected[cells]
    shown = [array for array in own.arrays if array.programs or array.is_free]
    computed = worked(data, [None if p else x for p, x in zip(data["programs"], numbers, strict=True)])
    for array in shown:
        cells = slice(array.first, array.first + array.data.size)
        assert computed[cells] == pytest.approx(expected[cells], rel=1e-9, abs=1e-12, nan_ok=True), array.name


def test_only_a_choice_of_tokens_keeps_an_equation_s_numbers_fixed():
    fixed = [name for name in WORKED if not any(array.is_free for array in graph_of(name).arrays)]
    assert fixed == [
        f"worked-{stem}" for stem in ENTRIES if stem in ("min_p", "repetition_penalty", "top_k", "top_p")
    ]


def test_a_moved_temperature_reaches_the_gradient():
    data, own = exported("worked-temperature"), graph_of_entry("temperature")
    tau, d = (next(a for a in own.arrays if a.label == label) for label in ("τ", "∂z'"))
    numbers = [None if p else x for p, x in zip(data["programs"], own.numbers, strict=True)]
    numbers[tau.first] = 4.0
    assert worked(data, numbers)[-d.data.size :] == [x / 4 for x in d.numbers]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize("name", EDITED)
def test_it_gives_the_numbers_of_given_ones_far_away(name, seed):
    """So far that other logits are the largest, and a ReLU lets through others."""
    data = exported(name)
    indices = [array.numbers for array in graph_of(name).arrays if not array.programs and not array.is_free]

    def far(nested):
        exact = closed_form.array(nested)
        if exact.ravel().tolist() in indices:
            return exact
        return exact + np.random.default_rng([*str(nested).encode(), seed]).standard_normal(exact.shape)

    whole = graph(name, far)
    expected = whole.numbers
    given = [None if program else number for program, number in zip(data["programs"], expected, strict=True)]
    computed = worked(data, given)
    for array in whole.arrays:
        # AdamW without ε makes NaN of a gradient that is 0 ever since
        cells = slice(array.first, array.first + array.data.size)
        size = max((abs(x) for x in expected[cells] if not math.isnan(x)), default=0)
        right = pytest.approx(expected[cells], rel=1e-9, abs=1e-9 * size, nan_ok=True)
        assert computed[cells] == right, array.name


@pytest.mark.parametrize(
    ("name", "setting", "moved"),
    [
        *(("sampling", "tau", tau) for tau in (0.1, 5)),
        *(("sampling", "k", k) for k in (1, 4)),
        *(("sampling", "u", u) for u in (0, 0.99)),
        *((name, "causal", 0) for name in ("matrix-core", "matrix-core-rows", "paper-gpt")),
        ("matrix-core", "causal", 1),
    ],
)
def test_it_gives_the_numbers_of_other_settings(name, setting, moved):
    data, expected = exported(name), graph(name, other, {setting: moved}).numbers
    given = [None if program else number for program, number in zip(data["programs"], expected, strict=True)]
    for cell, value in enumerate(worked(data, given)):
        assert close(name, value, expected[cell]), cell


def test_top_k_keeps_by_the_logits_as_they_are():
    data, kept = exported("sampling"), {"z": [1, 3, 3, -2], "k": 2}
    expected = graph("sampling", changes=kept).numbers
    given = [None if program else number for program, number in zip(data["programs"], expected, strict=True)]
    assert worked(data, given) == pytest.approx(expected, rel=1e-12)
    assert sum(math.isinf(x) for x in worked(data, given)) == 4  # two logits, with and without a temperature


def test_a_setting_s_bounds_are_exported():
    facts = {a[0]: a[4] for a in exported("sampling")["arrays"] if len(a) > 4}
    assert facts["k"][1:] == [1, 4, 1, True]
    assert facts["τ"][1] > 0
    rate = next(a[4] for a in exported("matrix-core")["arrays"] if a[0] == "−rate")
    assert rate[1:] == [0, 1, 0.01, False]


def test_parts_are_called_as_in_the_tables():
    labels = {label for form in exported("paper-gpt")["forms"] for label in form[3].values()}
    assert {"μ", "σ²"} <= labels
    assert not {"mean", "var", "xhat", "beta1"} & labels


@pytest.mark.parametrize("name", [*TITLES, "worked-cross_entropy"])
def test_a_loss_moves_as_its_gradient_foretells(name):
    """All numbers that have a gradient move at once, each by another amount: a wrong one would be seen."""
    data, sizes = exported(name), [array.data.size for array in graph_of(name).arrays]
    numbers, first = np.array(data["values"], float), [array[2] for array in data["arrays"]]
    for loss, pairs, _ in data["losses"]:
        step, foretold = np.zeros(len(numbers)), 0.0
        for array, gradient in ((a, g) for a, g in pairs if data["arrays"][a][3] == "free"):
            own, slope = (slice(first[k], first[k] + sizes[k]) for k in (array, gradient))
            step[own] = np.random.default_rng(array).uniform(0.5, 1, sizes[array])
            foretold += step[own] @ numbers[slope]
        assert step.any()
        ends = [
            worked(data, [None if p else x for p, x in zip(data["programs"], numbers + h * step, strict=True)])
            for h in (1e-5, -1e-5)
        ]
        assert (ends[0][first[loss]] - ends[1][first[loss]]) / 2e-5 == pytest.approx(foretold, abs=1e-5)
