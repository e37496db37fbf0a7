"""Each mistake of the catalogue was trained, and what is said of it agrees with its numbers. No test trains."""

import math
from dataclasses import replace

import pytest

import breaking
from byhand.book.port.naming import TABLE
from byhand.book.practice.catalogue import catalogue
from byhand.book.practice.effects import CURVES, KINDS, Curve, chance, effects, kind_of, named
from byhand.book.practice.planting import changed
from byhand.errors import ByhandError

EFFECTS = effects()
RIGHT = Curve(3.0, (2.0, 1.0), 1.0, 1.0)


def test_the_curves_are_fresh():
    fresh = breaking.text(TABLE.read_text("utf-8"), compute=False)
    assert CURVES.read_text("utf-8") == fresh, "python docs/build writes them"


def test_curves_of_another_catalogue_are_stale(monkeypatch):
    first, *rest = catalogue()
    monkeypatch.setattr(breaking, "catalogue", lambda: (replace(first, new="0"), *rest))
    assert breaking.text(TABLE.read_text("utf-8"), compute=False) == ""


def test_each_mistake_has_a_curve_or_touches_no_training():
    assert sorted(e.mistake.name for e in EFFECTS) == sorted(m.name for m in catalogue())
    assert {e.mistake.where for e in EFFECTS if e.kind == "none"} == breaking.UNTRAINED
    assert all((e.curve is None) == (e.kind == "none") for e in EFFECTS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_agrees_with_the_numbers(kind):
    for effect in (e for e in EFFECTS if e.kind == kind and e.curve and e.without):
        mine, right = effect.curve, effect.without
        losses = [math.inf if x is None else x for x in (*mine.losses, mine.own, mine.first)]
        assert kind != "diverges" or max(losses) > 1.2 * chance()
        assert kind != "stuck" or losses[-2] > right.own + 0.5 * (chance() - right.own)
        assert kind != "worse" or right.own < losses[-2] < chance()
        assert kind != "low" or losses[-2] < right.own
        assert kind != "off" or abs(losses[-1] - right.first) > 0.3 * right.first
        assert kind != "same" or losses[:-2] == pytest.approx(right.losses, abs=2e-3)


def test_the_worst_come_first():
    kinds = [*KINDS]
    assert [kinds.index(e.kind) for e in EFFECTS] == sorted(kinds.index(e.kind) for e in EFFECTS)


@pytest.mark.parametrize(
    ("curve", "kind"),
    [
        (RIGHT, "same"),
        (replace(RIGHT, own=None), "diverges"),
        (replace(RIGHT, own=9.0), "diverges"),
        (replace(RIGHT, own=2.9), "stuck"),
        (replace(RIGHT, own=1.5), "worse"),
        (replace(RIGHT, own=1.01), "as well"),
        (replace(RIGHT, own=0.1), "low"),
        (replace(RIGHT, first=4.3, own=1.5), "off"),
    ],
)
def test_what_one_sees(curve, kind):
    assert kind_of(curve, RIGHT, bounds=(0.8, 3.0), noise=0.02) == kind


def test_a_mistake_changes_lines_of_its_function():
    for mistake in catalogue():
        right, wrong = changed(mistake)
        assert right or wrong


def test_a_forgotten_mask_lowers_the_loss_of_its_own_program_alone():
    (effect,) = named("causal_softmax.no_mask")
    assert effect.kind == "low"
    assert effect.curve.own < effect.without.own < effect.curve.right


def test_a_name_is_a_mistake_or_an_equation():
    assert [e.mistake.name for e in named("no-mask")] == ["causal_softmax.no_mask"]
    assert {e.mistake.where.partition(".")[0] for e in named("layer_norm")} == {"layer_norm"}
    with pytest.raises(ByhandError, match="Did you mean no_mask"):
        named("no_masc")
