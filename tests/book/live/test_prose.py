"""What a page's text says of its lessons: buttons for its commands, and numbers that know their cells."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from live.prose import with_buttons, with_cells
from live.working import changed_cells, graph_of

GUIDES = Path(__file__).resolve().parents[3] / "docs" / "guides"
SAID = [p for p in sorted(GUIDES.glob("*.md")) if re.search(r"<!-- = |--set ", p.read_text(encoding="utf-8"))]
BUTTON = re.compile(r'<div class="live-try" data-lesson="([\w-]+)" data-cells="([^"]*)"></div>')
TOLD = re.compile(r'<span class="live-told" data-lesson="([\w-]+)" data-cell="(\d+)">([^<]*)</span>')


@cache
def marked(page):
    text = page.read_text(encoding="utf-8")
    lessons = {name: graph_of(name) for name in re.findall(r"<!-- generated: lesson ([\w-]+) ", text)}
    return with_cells(with_buttons(text, lessons), lessons)


@pytest.mark.parametrize("page", [p for p in SAID if not p.name.endswith(".zh-CN.md")], ids=lambda p: p.stem)
def test_both_languages_have_the_same_buttons_and_numbers(page):
    own, other = marked(page), marked(page.with_suffix(".zh-CN.md"))
    assert BUTTON.findall(own) == BUTTON.findall(other)
    assert sorted(TOLD.findall(own)) == sorted(TOLD.findall(other))
    for lesson, cell, said in TOLD.findall(own):
        digits = len(said.partition(".")[2])
        assert float(said.replace("−", "-")) == pytest.approx(
            graph_of(lesson).numbers[int(cell)], abs=0.51 * 10**-digits
        )


def test_a_command_gets_a_button_below_its_paragraph():
    text = 'Set it:\n`byhand work matrix-core --set "X[0]=X[1]" --set rate=1/5 --lang zh`. Then see.\n\nMore.\n\n'
    found = with_buttons(text, ["matrix-core"])
    (button,) = BUTTON.finditer(found)
    assert found[: button.start()].endswith("Then see.\n\n")
    assert found[button.end() :] == "\n\nMore.\n\n"
    assert json.loads(button[2]) == [[0, 0], [1, 1], [106, -0.2]]
    assert with_buttons(text, ["paper-gpt"]) == text  # its numbers are not on the page


def test_a_mask_is_a_number_and_a_token_is_not():
    core = graph_of("matrix-core")
    assert changed_cells(core, ["causal=1"]) == [(next(a.first for a in core.arrays if a.name == "causal"), 1)]
    assert changed_cells(core, ["y=1"]) == []
