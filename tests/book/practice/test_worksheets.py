"""Worksheets: every seed gives a solvable sheet with clean numbers, and grading knows right from wrong."""

import math
import re
from functools import lru_cache

import pytest

from byhand import ModelConfig, TinyGPT
from byhand.book.lessons.lesson import number_text
from byhand.book.numbers.closed_form import value
from byhand.book.practice.checking import agrees
from byhand.book.practice.edits import Mistake
from byhand.book.practice.grading import find_sheet, grade, read_answers
from byhand.book.practice.sheet_pages import BLANK, given, html, markdown
from byhand.book.practice.sheets import TOPICS, make
from byhand.book.words.language import say
from byhand.errors import ByhandError
from byhand.tracing.trace import Trace

LARGEST = 150  # no number of a sheet is larger
MOST = {"full": 110}  # questions: a whole model


drawn = lru_cache(None)(make)  # by several tests


def flat(numbers):
    return [x for part in numbers for x in flat(part)] if isinstance(numbers, list) else [numbers]


def check_solvable(topic, seed):
    """Given numbers are short, everything asked is finite and of a size for paper, and the key earns full credit."""
    sheet = drawn(topic, seed)
    for name, numbers in sheet.given:
        assert all(len(given(x)) <= 5 for x in flat(numbers)), name
    questions = sheet.questions()
    assert 10 <= len(questions) <= MOST.get(topic, 60)
    assert sum(abs(number.value) < 1e-9 for number in questions.values()) <= len(questions) / 5
    for number in questions.values():
        assert math.isfinite(number.value)
        assert abs(number.value) <= LARGEST
    rounded = {n: f"{q.value:.3g}" for n, q in questions.items()}
    graded = grade(sheet, rounded)
    assert graded.right == graded.asked == len(questions)


SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 100))]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_any_seeds_sheet_is_solvable(topic, seed):
    check_solvable(topic, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_full_sheet_has_scores_that_matter(seed):
    """The last token's weights are not 0.5 and 0.5, the two rows of H differ, and every step asks for something."""
    sheet = drawn("full", seed)
    numbers = {say(q.label, "en"): q.value for q in sheet.questions().values()}
    assert abs(numbers["P[1,0]"] - numbers["P[1,1]"]) > 0.1
    assert numbers["H[0,0]"] != numbers["H[1,0]"]
    assert all(step.numbers for step in sheet.steps)


def test_the_full_sheet_is_the_whole_model():
    """The equations of a block, in the order of the model's own pass with these sizes; every gradient of backprop."""
    config = ModelConfig(vocab_size=3, seq_len=2, d_model=2, n_layers=1, n_heads=1, d_ff=2)
    model = Trace.of(lambda: TinyGPT(config).loss([[0, 1]], [[1, 2]]))
    applied = [a.equation.name for a in model.applications if not a.equation.moves]
    assert [step.stem for step in make("full", 3).steps if not step.is_derivative] == applied


@pytest.mark.parametrize("seed", range(20))
def test_in_backprop_little_vanishes(seed):
    sheet = drawn("backprop", seed)
    hidden = [q.value for q in sheet.questions().values() if say(q.label, "en").startswith("u[")]
    assert len(hidden) == 4
    assert sum(u < 0 for u in hidden) == 1


def test_a_key_shows_the_way():
    key = markdown(make("attention", 7), key=True)
    assert "`S[0,0] = (q[0,0] × k[0,0] + " in key
    assert " / √D = (2 × " in key
    assert "\nWhy: A dot product is large" in key
    assert "\nGoal: Measure how well" in key
    assert "Why: " not in markdown(make("attention", 7))
    page = html(make("attention", 7), "zh", key=True)
    assert "目的：衡量" in page
    assert "原因：两个向量" in page


@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
def test_a_thousand_seeds_are_solvable(topic):
    for seed in range(1000):
        check_solvable(topic, seed)


@pytest.mark.parametrize("topic", TOPICS)
def test_same_seed_same_sheet_and_another_seed_another(topic):
    assert markdown(make(topic, 7)) == markdown(make(topic, 7))
    assert markdown(make(topic, 7)) != markdown(make(topic, 8))


def test_a_sheet_stays_what_it_is():
    """Sheets are handed out on paper: what a seed gives must not change from one release to the next."""
    q = dict(make("attention", 7).given)["q"]
    assert q == [[2, 1, -1, 2], [1, -1, 2, 0], [-1, 0, 0, 0]]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_markdown_asks_for_everything_and_the_key_answers_it(topic, lang):
    sheet = make(topic, 3)
    blank, key = markdown(sheet, lang), markdown(sheet, lang, key=True)
    assert find_sheet(blank) == (topic, 3)
    assert blank.count(f"= {BLANK}\n") == len(sheet.questions())
    graded = grade(sheet, read_answers(key))
    assert graded.right == graded.asked
    assert grade(sheet, read_answers(blank)).right == 0


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_html_needs_nothing_else(topic, lang):
    sheet = make(topic, 3)
    page = html(sheet, lang)
    assert page.startswith("<!doctype html>")
    assert not re.search(r"https?://|<script|<link|src=", page)
    assert page.count('class="number"') == len(sheet.questions())
    assert "@media print" in page
    assert f'content: "{topic} 3"' in page
    assert page.count('class="blank"') == len(sheet.questions()) + 1
    assert 'class="blank"' not in html(sheet, lang, key=True)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_wrong_turn_is_named(topic):
    """A sheet filled in with one kind of mistake throughout is graded as that mistake."""
    sheet = make(topic, 5)
    kinds = {m.en for q in sheet.questions().values() for m in q.mistakes}
    named = set()
    for kind in kinds:
        wrong = {
            n: repr(m.value)
            for n, q in sheet.questions().items()
            for m in q.mistakes
            if m.en == kind and math.isfinite(m.value) and not agrees(m.value, q.value)
        }
        found = dict(grade(sheet, wrong).misconceptions())
        assert bool(found) == bool(wrong), kind
        named |= set(found)
    assert len(named) >= min(2, len(kinds))


def test_credit_is_per_step():
    sheet = make("attention", 7)
    answers = {n: number_text(q.value) for n, q in sheet.questions().items() if n.startswith("1.")}
    answers["1.1"] = "99"
    answers["1.2"] = "no idea"
    graded = grade(sheet, answers)
    assert [(s.right, len(s.answers)) for s in graded.steps] == [(7, 9), (0, 9), (0, 6)]
    first, second = graded.steps[0].answers[:2]
    assert first.readable
    assert not second.readable
    assert graded.as_json()["right"] == 7


def test_forgetting_the_root_is_named_in_both_languages():
    sheet = make("attention", 7)
    wrong = {n: repr(2 * q.value) for n, q in sheet.questions().items() if n.startswith("1.")}
    graded = grade(sheet, wrong)
    assert graded.misconceptions()[0][0] == "forgot √D"
    assert graded.misconceptions("zh")[0][0] == "忘了除以 √D"


def test_a_slip_that_is_carried_on_costs_its_own_step_only():
    sheet = make("attention", 7)
    answers = {n: repr(q.value) for n, q in sheet.questions().items()}
    answers["1.4"] = repr(sheet.questions()["1.4"].value + 1)  # S[1,0]; P and Y of that row follow
    scores = [sheet.questions()[n].value for n in ("1.4", "1.5")]
    e = [math.exp(scores[0] + 1), math.exp(scores[1])]
    weights = [e[0] / sum(e), e[1] / sum(e)]
    v = dict(sheet.given)["v"]
    answers["2.4"], answers["2.5"] = map(repr, weights)
    for number, column in (("3.3", 0), ("3.4", 1)):
        answers[number] = repr(weights[0] * v[0][column] + weights[1] * v[1][column])
    graded = grade(sheet, answers)
    assert [(s.right, len(s.answers)) for s in graded.steps] == [(8, 9), (9, 9), (6, 6)]
    assert [a.number for s in graded.steps for a in s.answers if a.carried] == ["2.4", "2.5", "3.3", "3.4"]
    answers["2.4"] = "0.5"
    assert grade(sheet, answers).steps[1].right == 8


def test_a_wrong_mean_is_carried_into_the_variance():
    sheet = make("layer-norm", 7)
    x = dict(sheet.given)["x"][0]
    wrong = sheet.questions()["1.1"].value + 1
    answers = {"1.1": repr(wrong), "1.2": repr(sum((a - wrong) ** 2 for a in x) / 4)}
    assert [a.carried for a in grade(sheet, answers).steps[0].answers[:2]] == [False, True]


def test_a_slip_without_a_value_is_no_crash():
    sheet = make("layer-norm", 7)
    assert grade(sheet, {"1.1": "3", "1.2": "-4", "1.4": "0"}).right == 0


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("1.1 = 0.5", {"1.1": "0.5"}),
        ("1.1: 0,5", {"1.1": "0,5"}),
        ("１．１：０，５", {"1.1": "0,5"}),
        ("１．１：x ＝ １：３", {"1.1": "1:3"}),
        ("1.1:", {}),
        ("１．１ ＝ －２．５", {"1.1": "-2.5"}),
        ("- **2.13** `P[1,0]` = 1/3", {"2.13": "1/3"}),
        ("  3.1) x = 2 + 3 = 5", {"3.1": "5"}),
        ("| 1.2 | y = −0.5 |", {"1.2": "−0.5"}),
        ("- **1.1** `S` = ____", {"1.1": ""}),
        ("- **1.1** `S` = __0.25__", {"1.1": "0.25"}),
        ("nothing here = 3", {}),
        ("1.1 no equals sign", {}),
    ],
)
def test_answers_are_read_as_people_write_them(line, answers):
    assert read_answers(line) == answers


def test_answers_to_another_sheet_are_refused():
    with pytest.raises(ByhandError, match=r"have a number 9\.1"):
        grade(make("adamw", 1), {"9.1": "3"})


@pytest.mark.parametrize(("topic", "seed", "said"), [("atention", 1, "mean attention"), ("full", -1, "0 or more")])
def test_wrong_topic_or_seed(topic, seed, said):
    with pytest.raises(ByhandError, match=said):
        make(topic, seed)


def test_mistakes_say_the_same_in_both_languages():
    made: set[Mistake] = {m for t in TOPICS for q in make(t, 2).questions().values() for m in q.mistakes}
    for mistake in made:
        assert re.search(r"[\u4e00-\u9fff]", mistake.zh), mistake.en
        assert not re.search(r"[\u4e00-\u9fff]", mistake.en)


def test_labels_are_text():
    for topic in TOPICS:
        for number in make(topic, 2).questions().values():
            assert "=" not in say(number.label, "en")
            assert value(repr(number.value)) == number.value
