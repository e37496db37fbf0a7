"""The exercises' buttons in a real browser: what they compute is what the command and the page's text say."""

import re
import shlex
from functools import cache
from importlib import import_module

import pytest

from browser.conftest import DOCS, PAGES
from browser.test_live_pages import LANGUAGES, numbers, read, same, shown
from byhand.book.lessons.changes import with_changes
from live.prose import COMMAND
from live.working import graph

pytestmark = pytest.mark.browser
PRESS = """
    const place = document.querySelectorAll(".live-try")[arguments[0]];
    place.querySelector("button").click();
    return Array.from(live.graphs.find(({ name }) => name === place.dataset.lesson).values);
"""
LOSS = re.compile(r"^& (L'?) = ([\d.]+) \\; \\to \\; ([\d.]+)(?: \\\\|$)", re.MULTILINE)


def exercises(page, lang):
    """Return each button's lesson and changes, and the losses that the text has before the next command."""
    file = DOCS / f"{page}{'' if lang == 'en' else '.zh-CN'}.md"
    text = file.read_text(encoding="utf-8")
    commands = [
        c for c in COMMAND.finditer(text) if f"<!-- generated: lesson {c[1]} " in text and "text[" not in c[2]
    ]
    ends = [*(c.start() for c in commands), len(text)][1:]
    return [
        (c[1], tuple(shlex.split(c[2])[1::2]), LOSS.findall(text[c.end() : end]))
        for c, end in zip(commands, ends, strict=True)
    ]


WITH = [str(page) for page in PAGES if exercises(page, "en")]


@cache
def expected(name, changes):
    file = import_module(f"byhand.book.lessons.examples.{name.replace('-', '_')}")
    return graph(name, changes=with_changes(file.GIVEN, changes, getattr(file, "CHOICES", {}))).numbers


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("page", WITH, ids=str)
def test_a_button_works_what_the_command_does(browser, site, page, lang):
    read(browser, site, page, lang)
    declared = exercises(page, lang)
    idle = shown(browser, ".live-try")
    assert len(idle) == len(declared) == len(exercises(page, "en"))
    for k, (name, changes, losses) in enumerate(declared):
        same(f"{name} {changes}", numbers(browser.run(PRESS, k)), expected(name, changes))
        said = shown(browser, ".live-try output")
        assert all(f"{letter} {before} → {after}" in said[k] for letter, before, after in losses)
        assert [k] == [other for other, text in enumerate(said) if text]
    same("back", numbers(browser.run(PRESS, len(declared) - 1)), graph(declared[-1][0]).numbers)
    assert shown(browser, ".live-try") == idle
    assert browser.complaints() == []


def test_the_text_has_losses_to_compare():
    assert sum(len(losses) for page in WITH for *_, losses in exercises(page, "en")) > 3


def test_a_button_is_back_when_the_numbers_are(browser, site):
    read(browser, site, WITH[-1])
    idle = shown(browser, ".live-try button")
    browser.run(PRESS, 0)
    assert shown(browser, ".live-try button") != idle
    browser.run("[...document.querySelectorAll('.live-tools > button')].at(-1).click()")
    assert shown(browser, ".live-try button") == idle


def test_no_prediction_where_there_is_no_gradient(browser, site):
    page = next(p for p in WITH if any(name == "matrix-core" for name, *_ in exercises(p, "en")))
    read(browser, site, page)
    script = """
        const graph = live.graphs.find(({ name }) => name === "matrix-core");
        const cell = (name) => graph.arrays.find((array) => array.name === name).first;
        return arguments[0].map((names) => {
          live.restore();
          return live.changeAll(graph, names.map((name) => [cell(name), 1.01]))[0].foretold;
        });
    """
    cells = [["X"], ["e_0"], ["W_Q"], ["X", "W_Q"]]
    assert numbers(browser.run(script, cells))[2] == pytest.approx(1.08411, abs=1e-5)
    assert [x is None for x in browser.run(script, cells)] == [True, True, False, True]
    assert "×" not in shown(browser, ".live-news")[0]
