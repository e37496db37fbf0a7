"""The path: every page says what it needs, ends with three answered questions and leads on, in both languages."""

import re

import pytest

from byhand.book.lessons.examples import TITLES
from byhand.book.words.language import PAGE
from byhand.cli.main import COMMANDS
from pages import filling as pages
from pages.path import PATH

GUIDES = pages.docs() / "guides"
PLACES = [(stop.name, suffix) for stop in PATH for suffix in (PAGE.en, PAGE.zh)]
QUESTION = re.compile(r"<details><summary>(.+?[?？])</summary>\n\n(.+?)\n\n</details>", re.DOTALL)


def text(place):
    return (GUIDES / "".join(place)).read_text(encoding="utf-8")


@pytest.mark.parametrize("place", PLACES, ids="".join)
def test_a_page_begins_with_what_it_needs(place):
    head = text(place).partition("\n## ")[0]
    assert f"<!-- generated: path {place[0]} -->" in head


@pytest.mark.parametrize("place", PLACES, ids="".join)
def test_a_page_ends_with_three_answered_questions_and_the_way_on(place):
    before, mark, after = text(place).partition(f"<!-- generated: onward {place[0]} -->")
    assert mark, "no onward block"
    assert after.rstrip().endswith("<!-- end -->"), "onward is the last thing on the page"
    assert after.count("<!-- end -->") == 1
    section = before.rpartition("\n## ")[2]
    asked = QUESTION.findall(section)
    assert section.count("<details>") == section.count("</details>") == len(asked) == 3
    assert section.rstrip().endswith("</details>"), "onward follows the questions"
    assert len({question for question, _ in asked}) == 3
    assert all(len(answer) > 20 for _, answer in asked)
    assert not any(re.search(r"[`$]|\]\(", question) for question, _ in asked), "a summary is HTML, not Markdown"


def test_needs_come_before():
    met = set()
    for stop in PATH:
        assert set(stop.earlier) <= met, stop.name
        met.add(stop.name)
    assert len(met) == len(PATH)


@pytest.mark.parametrize("stop", PATH, ids=lambda stop: stop.name)
def test_the_command_that_goes_on_is_there(stop):
    program, command, *rest = stop.command.split()
    if program == "python":
        assert (GUIDES.parents[1] / command).is_file()
        return
    assert program == "byhand"
    assert command in COMMANDS
    if command == "work":
        assert rest[0] in TITLES


@pytest.mark.parametrize("suffix", [PAGE.en, PAGE.zh])
def test_the_index_lists_guides_as_the_path_orders_them(suffix):
    listed = re.findall(
        r"^(?:-|\d+\.) \[.*?\]\(guides/([\w-]+)\.", (GUIDES.parent / f"index{suffix}").read_text("utf-8"), re.M
    )
    beside = [
        "symptoms",
        "own-model",
        "conversations",
        "smollm2",
        "python",
        "serve",
        "explorer",
        "port",
        "break",
        "glossary",
        "code-map",
    ]
    assert listed == [*(stop.name for stop in PATH), *beside]
