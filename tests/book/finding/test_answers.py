"""What learners type is answered right the first time, and answers besides equations lead somewhere."""

from collections import Counter
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from book.finding.learners_queries import CHINESE, ENGLISH, MISSED
from byhand.book.finding import reading, source
from byhand.book.finding.absent import ABSENT
from byhand.book.finding.index import all_findings, findings
from byhand.book.finding.search import search
from byhand.book.finding.settings import SETTINGS
from byhand.book.lessons.examples import TITLES
from byhand.cli.arguments.parsing import ALIASES
from byhand.cli.arguments.settings import settings
from byhand.config import ModelConfig, OptimConfig, TrainConfig
from byhand.engine.equation import registry

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("equation", "place", "setting", "guide", "lesson", "absent")


def first(query: str) -> str:
    found = search(query)
    return found[0].finding.name if found else ""


@pytest.mark.parametrize(("query", "right"), [*ENGLISH.items(), *CHINESE.items(), *MISSED.items()])
def test_what_learners_type_is_answered_right_the_first_time(query, right):
    assert first(query) in right.split(", ")


def test_the_queries_are_sixty_and_name_answers_that_exist():
    assert len({**ENGLISH, **CHINESE}) == 60
    named = {name for right in {**ENGLISH, **CHINESE, **MISSED}.values() for name in right.split(", ")}
    assert named <= set(all_findings())


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("Ｄｒｏｐｏｕｔ", "dropout"),
        ("droput", "dropout"),
        ("why do we divide the scores by the square root of the head size?", "attention_scores"),
        ("请问为什么要减去最大值呢", "softmax"),
        ("注意力机制是怎么实现的", "causal_self_attention"),
        ("什么是残差连接？", "residual"),
        ("cross entrpy loss", "cross_entropy"),
        ("how can I use dropout in this model", "dropout"),
        ("nn.Embedding(vocab_size, n_embd)", "embedding"),
        ("optimizer.zero_grad(set_to_none=True)", "zero_grad"),
    ],
)
def test_typing_errors_full_width_letters_and_whole_questions(query, right):
    assert first(query) == right


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_found_by_its_name_its_first_and_its_last_question(kind):
    for name, answer in all_findings().items():
        if answer.kind == kind:
            assert first(name) == name
            for asked in {*answer.asked[:1], *answer.asked[-1:]}:
                assert name in [m.finding.name for m in search(asked)], asked


def test_no_two_answers_have_one_name():
    others = (*SETTINGS, *reading.guides(), *reading.lessons(), *ABSENT)
    named = [*findings(), *(other.name for other in others)]
    twice = [name for name, count in Counter(named).items() if count > 1]
    assert not twice, "what the model has must leave src/byhand/book/finding/absent.py"
    assert len(all_findings()) == len(named)
    assert len(reading.lessons()) == len(TITLES)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_pointers_of_guides_and_lessons_open_what_they_name(lang):
    for answer in all_findings().values():
        if answer.kind == "guide":
            path, _, line = answer.page(lang).rpartition(":")
            assert line == "1"
            assert f"\n# {answer.title.said(lang)}\n" in (ROOT / path).read_text(encoding="utf-8")
        elif answer.kind == "lesson":
            assert answer.title == TITLES[answer.name.removeprefix("work ")]
            assert answer.command == f"byhand {answer.name}"
            path, _, line = answer.forward.rpartition(":")
            assert (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1].startswith("def lesson(")


def test_questions_lead_to_guides_and_lessons_that_exist():
    guides = {guide.name.removeprefix("guides/") for guide in reading.guides()}
    assert set(reading.questions(reading.GUIDES)) <= guides
    assert set(reading.questions(reading.ASKED_OF_LESSONS)) <= set(TITLES)


def test_every_setting_of_a_run_is_an_answer_and_points_at_its_field():
    flags = {setting.flag for setting in settings(TrainConfig).values()}
    named = {setting.name for setting in SETTINGS}
    answered = {f"--{name.replace('_', '-')}" for name in named}
    assert not flags - answered, "name them in TABLE of src/byhand/book/finding/settings.py"
    assert not answered - flags, "take them out of TABLE in src/byhand/book/finding/settings.py"
    for name in named:
        path, _, line = all_findings()[name].forward.rpartition(":")
        assert (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1].startswith(f"    {name}: ")
        command = all_findings()[name].command.split()
        assert command[:2] == ["byhand", "train"]
        assert command[2].replace("--no-", "--") in flags


def test_names_that_train_accepts_lead_to_the_same_setting():
    for other, own in ALIASES.items():
        assert own.removeprefix("--").replace("-", "_") in [m.finding.name for m in search(other)]


def test_what_the_model_lacks_points_at_what_stands_in_its_place():
    for absent in ABSENT:
        assert absent.see, absent.name
        for name in absent.see:
            assert all_findings()[name].kind != "absent", absent.name
            assert all_findings()[name].forward, name
        assert not (source.PACKAGE / f"equations/{absent.name}.py").exists(), "it is there: delete its item"


def test_what_the_model_has_is_not_named_as_lacking():
    """Neither an equation, nor a choice of a setting: an optimizer, an activation, a norm."""
    has = {*registry}
    for config in (ModelConfig, OptimConfig):
        for hint in get_type_hints(config).values():
            has |= {*get_args(hint)} if get_origin(hint) is Literal else set()
    for absent in (answer for answer in all_findings().values() if answer.kind == "absent"):
        named = {name.lower().replace("-", "_").replace(" ", "_") for name in (absent.name, *absent.asked)}
        assert not named & has, f"delete {named & has} from absent.py: the model has it"


def test_an_installed_package_knows_the_guides_without_their_titles(monkeypatch):
    monkeypatch.setattr(source, "repository", lambda: None)
    names = {guide.name.removeprefix("guides/") for guide in reading.guides.__wrapped__()}
    assert names == set(reading.questions(reading.GUIDES))
