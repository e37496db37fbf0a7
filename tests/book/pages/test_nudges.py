"""Tables of changes: slopes are gradients, exercises go as their page says, worksheets of the path are there."""

import re

import pytest

from book.pages.asked import answers_of
from byhand.book.lessons.examples import make
from byhand.book.practice.sheets import TOPICS
from byhand.book.words.language import say
from byhand.errors import ByhandError
from pages.answers import core, lessons
from pages.filling import as_read, docs
from pages.path import PATH

GRADIENT, UPDATE = (docs() / "guides" / f"{name}.md" for name in ("gradient", "update"))


def loss(*changes, label="L"):
    numbers = (n for step in make("matrix-core", changes=changes).steps for n in step.numbers)
    return [n.value for n in numbers if say(n.label, "en") == label][-1]


def test_a_nudge_measures_the_gradient_of_every_number_that_has_one():
    elements = [(name, (i, j)) for name in ("W_Q", "W_K", "W_V", "S") for i in range(2) for j in range(2)]
    elements += [("z", (0,)), ("z", (1,))]
    for name, index in elements:
        measured = (core.core_loss(name, index, 0.001) - core.core_loss(name, index, -0.001)) / 0.002
        assert abs(measured - core.core_gradient(name)[index]) <= 2e-6, (name, index)


def test_slopes_of_the_curves():
    rows = re.findall(r"\n(\| \$`(?:e\^x|\\ln x)`\$ .*)\n\| rate (.*)", as_read(GRADIENT.read_text(encoding="utf-8")))
    exponential, logarithm = rows
    assert exponential[0].split("|")[2:] == exponential[1].split("|")[1:]  # e^x is its own rate
    assert logarithm[1] == "| 2 | 1 | 0.5 | 0.25 |"


@pytest.mark.parametrize("name", ["layer_norm", "gelu"])
def test_what_a_nudge_passes_on_has_the_rate_of_the_rules(name):
    rows = answers_of("guides/backward-by-hand").chained(name, 0.01)
    assert len(rows) >= 4
    for label, _, more, less, rule in rows:
        by_rules = eval(rule.replace("×", "*").replace("−", "-"))
        assert (more - less) / 0.02 == pytest.approx(by_rules, rel=2e-4), label


def test_a_nudged_score_moves_the_weights_and_the_loss_by_its_gradient():
    rows = re.findall(r"^\| `Δ[PL].*`(.*?)` \|$", as_read(UPDATE.read_text(encoding="utf-8")), re.MULTILINE)
    changes = [float(row.replace("−", "-")) for row in rows]
    assert sum(changes[:2]) == pytest.approx(0, abs=1e-9)
    gradient = next(n.value for s in make("matrix-core").steps for n in s.numbers if n.label == "∂S[0,1]")
    assert changes[-1] == pytest.approx(gradient, rel=1e-5)


def test_a_folded_table_leaves_out_what_takes_no_arithmetic():
    text = (docs() / "guides" / "backward-by-hand.md").read_text(encoding="utf-8")
    folds = re.findall(r"((?:\|[^\n]*\n)+)\n<details><summary>The other \d+ numbers([^<]*</summary>[^<]*)<", text)
    assert folds
    for shown, body in folds:
        assert not re.findall(r"\| `0` \| `0` \||\+ 0` \|", body)
        assert not set(shown.splitlines()[2:]) & set(body.splitlines()), "what is in sight is not folded too"


def test_the_exercises_go_the_way_that_their_answers_say():
    plain, after = loss(), loss(label="L'")
    assert loss("W_K=W_Q") < plain
    assert loss("causal=1") < loss("W_K=W_Q")
    drop = plain - loss("rate=0.2", label="L'")
    assert 1.9 * (plain - after) < drop < 2 * (plain - after)
    assert loss("X[1]=X[0]", "W_Q=[[3,-1],[2,5]]") == pytest.approx(loss("X[1]=X[0]"))  # whomever anybody looks at
    assert loss("X=[[0,1],[1,0]]") == pytest.approx(loss("W_K=W_Q"))


def test_what_no_example_has_is_refused():
    with pytest.raises(ByhandError, match="has no array 'nothing'"):
        list(lessons.changed_arrays(("matrix-core", "rate=1", "nothing")))


def test_worksheets_of_the_path_are_there():
    assert {stop.sheet for stop in PATH if stop.sheet} <= set(TOPICS)
    for stop in PATH:
        text = (docs() / "guides" / f"{stop.name}.md").read_text(encoding="utf-8")
        assert re.findall(r"worksheet --topic (\S+)", text)[-1:] == [stop.sheet] * bool(stop.sheet), stop.name
