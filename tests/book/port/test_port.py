"""The mistakes of the catalogue move the page's numbers, no two alike, and the numbers name them."""

import json
import math
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import port as building
from byhand.book.port import model, naming
from byhand.book.port.naming import FOUR, Printed, apart, named, table
from byhand.book.practice.catalogue import catalogue

CATALOGUE = catalogue()
MODELS = {name: table(name) for name in model.CONFIGS}
GPT = MODELS["gpt"]
# The two forms of GELU differ by less than 5e-4 everywhere: they move these numbers by 3e-5 and 3e-4 alone.
BOTH = "used the exact form of GELU, with erf, forward and backward"
ERF = {"used the exact form, with erf", "used the slope of the exact form", BOTH}
ALIKE = [{"used the slope of the exact form", BOTH}, {"used a tiny eps, or none", "used the usual eps, 1e-5"}]


def given(numbers, digits=9):
    return [Printed.of(f"{x:.{digits}g}") for x in numbers]


def off(one, other):
    return max(a.off(b) for a, b in zip(given(one, 17), other, strict=True))


def sentences(answer):
    return [tuple(m.en for m in found) for found in answer.matches]


def test_the_table_is_fresh():
    assert Path(naming.TABLE).read_text("utf-8") == building.text(compute=False), "python docs/build writes it"


def test_a_table_whose_catalogue_has_changed_is_stale(monkeypatch):
    monkeypatch.setattr(building, "catalogue", lambda: (replace(CATALOGUE[0], new="pass"), *CATALOGUE[1:]))
    assert building.text(compute=False) == ""


def test_only_new_mistakes_and_their_pairs_are_computed(monkeypatch):
    new, computed = replace(CATALOGUE[1], new="0"), []
    monkeypatch.setattr(building, "catalogue", lambda: (CATALOGUE[0], new, *CATALOGUE[3:]))
    monkeypatch.setattr(
        building,
        "numbers_with",
        lambda *made, of=lambda: [1] * FOUR: computed.append(made) or [9.0 * x for x in of()],
    )
    made, there = (json.loads(text) for text in (building.text(), Path(naming.TABLE).read_text("utf-8")))
    assert len(computed) == len(model.CONFIGS) + len(GPT.mistakes) - 2
    assert all(new in mistakes for mistakes in computed)
    assert made["mistakes"][2:] == there["mistakes"][3:]
    assert made["pairs"][2:] == there["pairs"][3:]


def test_a_new_model_leaves_the_numbers_of_the_others(monkeypatch):
    computed = []
    monkeypatch.setattr(building, "numbers_with", lambda *made, of=None: computed.append(made) or [9.0] * 6)
    monkeypatch.setattr(model, "all_numbers", lambda name: MODELS.get(name, GPT).right)
    monkeypatch.setitem(model.CONFIGS, "other", model.GPT)
    made, there = (json.loads(text) for text in (building.text(), Path(naming.TABLE).read_text("utf-8")))
    assert computed == [(mistake,) for mistake in CATALOGUE]
    assert made["pairs"] == there["pairs"]
    assert made["mistakes"] == [[*row[:-1], row[-1] | {"other": [9.0] * 6}] for row in there["mistakes"]]


def test_each_mistake_is_one_substitution_that_can_be_made():
    assert len(CATALOGUE) >= 60
    for mistake in CATALOGUE:
        with building.planted(mistake):
            assert mistake.en
            assert mistake.zh
    assert model.all_numbers() == pytest.approx(GPT.right, rel=1e-8)


def test_a_mistake_that_cannot_be_made_changes_nothing():
    first, other = next((a, b) for a, b in combinations(CATALOGUE, 2) if (a.where, a.old) == (b.where, b.old))
    with pytest.raises(ValueError, match="does not say"), building.planted(first, other):
        pass
    assert model.all_numbers() == pytest.approx(GPT.right, rel=1e-8)


def told_apart(name):
    """Return the mistakes that a model tells apart: with one text, to divide by B alone is to take the sum."""
    return [m for m in MODELS[name].mistakes if name != "microgpt" or not re.search(r"by B\b", m.en)]


@pytest.mark.parametrize("name", MODELS)
def test_each_mistake_moves_a_number_and_no_two_look_alike(name):
    known = MODELS[name]
    assert {m.en for m in known.mistakes if off(m.numbers, known.right) < 1e-3} <= ERF
    assert min(off(m.numbers, known.right) for m in known.mistakes) > 2 * naming.RIGHT[0]
    gaps = {(a.en, b.en): off(a.numbers, b.numbers) for a, b in combinations(told_apart(name), 2)}
    assert all({*both} in ALIKE for both, by in gaps.items() if by < 20 * naming.RIGHT[0])
    assert min(gaps.values()) > 1.5 * naming.RIGHT[0]


def test_each_mistake_is_made_by_a_model():
    made = {(m.where, m.en) for known in MODELS.values() for m in known.mistakes}
    rows = json.loads(Path(naming.TABLE).read_text("utf-8"))["mistakes"]
    assert made == {(where, en) for en, _, where, *_ in rows}


def test_a_forgotten_maximum_shows_in_the_numbers_with_800_alone():
    forgotten = [m.numbers for m in GPT.mistakes if m.en == "did not subtract the maximum"]
    assert sorted(np.isnan(numbers).tolist() for numbers in forgotten) == [
        [False] * 4 + [False, True],
        [False] * 4 + [True, False],
    ]
    assert all(numbers[:FOUR] == GPT.right[:FOUR] for numbers in forgotten)


def computed(every):
    return [
        pytest.param(m, id=f"{m.where}, {m.en}", marks=[] if not i % every else pytest.mark.slow)
        for i, m in enumerate(CATALOGUE)
    ]


@pytest.mark.parametrize("mistake", computed(16))
def test_a_planted_mistake_leads_to_the_numbers_of_the_table(mistake):
    rows = json.loads(Path(naming.TABLE).read_text("utf-8"))["mistakes"]
    of = next(row[4] for row in rows if row[0] == mistake.en and row[2] == building._place(mistake.where))
    for name in model.CONFIGS:
        found = building._moved(mistake, name)
        assert [x is None for x in found] == [x is None for x in of.get(name, [])]
        assert np.allclose([x or 0 for x in found], [x or 0 for x in of.get(name, [])], rtol=1e-6)


def test_two_planted_mistakes_lead_to_the_numbers_of_the_table():
    of_gpt = [m for m in CATALOGUE if (building._place(m.where), m.en) in {(k.where, k.en) for k in GPT.mistakes}]
    rows = [row for row in GPT.pairs() if row[2][0] == row[2][0]]
    for i, k, numbers in rows[:: len(rows) // 8]:
        assert np.allclose(building.numbers_with(of_gpt[i], of_gpt[k]), numbers, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_float32_stays_within_what_the_page_promises(name):
    config = model.CONFIGS[name]
    numbers = [*model.numbers("float32", config), *(model.far("float32") if name == "gpt" else [])]
    answer = named(given(numbers), MODELS[name])
    assert answer.first is None


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_name_each_mistake(name):
    known, apart = MODELS[name], told_apart(name)
    for mistake in apart:
        rounded = [x * (1 + naming.RIGHT[i] / 2 * (-1) ** i) for i, x in enumerate(mistake.numbers)]
        answer = named(given(rounded), known)
        assert [m.en for found in answer.matches for m in found if m in apart] == [mistake.en]
        assert (answer.matches[0][0].where, answer.next) == (mistake.where, None)


def test_the_first_numbers_list_what_they_allow_and_ask_for_the_next():
    mistake = next(m for m in GPT.mistakes if m.where == "equations/layer_norm.py:vjp")
    answer = named(given(mistake.numbers[:1]), GPT)
    assert (answer.first, answer.next) == (None, 1)
    answer = named(given(GPT.right[:FOUR]), GPT)
    assert (answer.first, answer.next) == (None, FOUR)
    answer = named(given(GPT.right), GPT)
    assert (answer.first, answer.next) == (None, None)
    decayed = [m for m in GPT.mistakes if m.numbers[:2] == mistake.numbers[:2]]
    assert decayed == [mistake]


def test_two_mistakes_together_are_named():
    rows = [row for row in GPT.pairs() if row[2][0] == row[2][0]]
    for i, k, numbers in rows[:: len(rows) // 10]:
        said = sentences(named(given(numbers), GPT))
        # A mistake alone goes first: one that hides the other, or is what both are together.
        assert (GPT.mistakes[i].en, GPT.mistakes[k].en) in said or len(said[0]) == 1


def test_what_no_mistake_leads_to_has_a_nearest_one():
    mistake = next(m for m in GPT.mistakes if m.en == "used ReLU")
    answer = named(given([1.0003 * x for x in mistake.numbers[:2]]), GPT)
    assert (answer.matches, answer.nearest, answer.next) == ((), mistake, 2)
    assert answer.off == pytest.approx(3e-4, rel=1e-3)


def test_what_does_not_fit_a_mistake_is_told_from_what_does():
    forward = next(m for m in GPT.mistakes if m.where == "equations/attention_scores.py:forward" and "C" in m.en)
    answer = named(given([forward.numbers[0], 1234.5]), GPT)
    assert (sentences(answer)[0], answer.fits, answer.by_chance, answer.next) == ((forward.en,), 1, True, 2)
    answer = named(given([*forward.numbers[:3], 1234.5]), GPT)
    assert (sentences(answer), answer.fits, answer.by_chance, answer.next) == ([(forward.en,)], 3, False, None)


def test_one_wrong_number_may_match_by_chance_until_the_next_are_there():
    mistake = next(m for m in GPT.mistakes if m.where == "equations/causal_softmax.py:forward")
    for count in range(1, FOUR + 1):
        answer = named(given(mistake.numbers[:count]), GPT)
        assert (answer.by_chance, answer.next) == ((True, 1) if count == 1 else (False, None))


@pytest.mark.parametrize("first", range(FOUR))
def test_neither_a_match_nor_the_nearest_moves_another_number_first(first):
    """Nor does a mistake explain a wrong number that it leaves right, or almost."""
    for share in (1.2e-5, 3e-5, 1e-3):
        numbers = [x * (1 + share * (i >= first)) for i, x in enumerate(GPT.right[:FOUR])]
        answer = named(given(numbers[: first + 1]), GPT)
        told = [m for found in answer.matches if len(found) == 1 for m in found]
        told += [answer.nearest] if answer.nearest else []
        assert told or answer.matches
        for mistake in told:
            moved = [apart(x, right) > naming.RIGHT[0] for x, right in zip(mistake.numbers, GPT.right, strict=True)]
            assert moved[: first + 1] == [False] * first + [True]


def test_a_mistake_goes_before_two_that_lead_to_the_same():
    """A loss with 800 is finite, or is not, as the mistake's: what forgets a maximum besides fits less."""
    mistake = next(m for m in GPT.mistakes if m.en == "forgot the position")
    assert sentences(named(given(mistake.numbers), GPT)) == [(mistake.en,)]
    answer = named(given([*mistake.numbers[:FOUR], math.nan, mistake.numbers[5]]), GPT)
    assert sentences(answer) == [(mistake.en, "did not subtract the maximum")]
    assert answer.matches[0][1].where == "equations/cross_entropy.py:forward"


def test_few_digits_agree_as_far_as_they_go():
    assert [named(given(GPT.right, digits), GPT).few_digits for digits in (4, 5, 6, 9)] == [True, True, False, False]
    assert named(given(GPT.right, digits=4), GPT).first is None
    assert named(given([1.01 * GPT.right[0]], digits=4), GPT).first == 0
    for zero in ("0", "-0", "0.0"):  # which has no more digits
        answer = named([*given(GPT.right[:1]), Printed.of(zero)], GPT)
        assert (answer.matches, answer.few_digits) == ((), False)
    assert named([Printed.of("0.00")] * 4, GPT).few_digits


def test_a_number_that_is_not_finite_agrees_with_none_that_is():
    answer = named([Printed.of("nan")], GPT)
    assert answer.first == 0
    assert all(not np.isfinite(m.numbers[0]) for (m,) in answer.matches)
