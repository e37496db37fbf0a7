"""The pages' matrices and rows are found in the lessons' graphs."""

import gzip
import html
import json
import re
from pathlib import Path

import pytest

from live.pages import BLOCK, MATRIX, graph_of, hooked

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "<!-- generated: lesson " in p.read_text(encoding="utf-8"))


SECTION = re.compile(
    r'<div class="live-step" data-lesson="([\w-]+)" data-step="(\d+)">\n(.*?)(?=<div class="live-step|<!-- end)',
    re.DOTALL,
)
IDS = r"\d( & \d)*"  # bytes, tokens and targets: the step that cuts them is not a pass


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_matrix_of_a_lesson_is_its_graphs(page):
    chinese = page.name.endswith(".zh-CN.md")
    text = page.read_text(encoding="utf-8").replace("```math\n", "```{math}\n")
    marked = hooked(text, "zh" if chinese else "en")
    shown = re.findall(r'data-show="([^"]*)"', marked)
    assert shown or page.name.startswith("bpe")
    for name, number, body in SECTION.findall(marked):
        if int(number) and not graph_of(name).links[int(number) - 1].makes:
            continue  # it belongs to no pass: its arrays are in no graph
        left = re.sub(r'<div class="live-math".*?</div>', "", body, flags=re.DOTALL)
        left += "".join(json.loads(html.unescape(show))[0][0] for show in re.findall(r'data-show="([^"]*)"', body))
        assert [matrix for matrix in MATRIX.findall(left) if not re.fullmatch(IDS, matrix)] == [], (name, number)
    blocks = "".join(block[5] for block in BLOCK.finditer(text) if block[2] == "lesson")
    data = re.findall(r'<script type="application/json" class="live-data">(.*?)</script>', marked)
    assert {json.loads(one)["lesson"] for one in data} == {name for name, _, _ in SECTION.findall(marked)}
    labels = {number[0] for one in data for step in json.loads(one)["steps"] for number in step["numbers"]}
    rows = set(re.findall(r"^\| `([^`]+)` \| `[^`]+` \| `[^`]+` \|$", blocks, re.MULTILINE))
    assert rows
    assert rows <= labels


def test_a_page_with_plain_steps_has_two_decimals():
    text = (DOCS / "guides" / "matrix-core.md").read_text(encoding="utf-8").replace("```math", "```{math}")
    marked = hooked(text, "en")
    begun = re.findall(r'data-lesson="two-tokens" data-step="(\d+)" data-places="2">\n\n\*\*(\d+)\.\*\* ', marked)
    assert begun[:8] == [(str(n), str(n)) for n in range(1, 9)]
    page = marked.partition('class="live-data"')[0]
    assert all(data in page for data in ("`exp(0.71)`", "1 / 3.03`", "&quot;0.33&quot;", "&quot;1.03&quot;"))
    assert not re.search(r"\d\.\d{5}", page)


def test_a_page_without_a_lesson_stays_as_it_is():
    text = (DOCS / "guides" / "glossary.md").read_text(encoding="utf-8")
    assert hooked(text, "en") == text


def test_the_scripts_are_small_and_speak_both_languages():
    scripts = sorted((DOCS.parent / "src/byhand/web/live").glob("*.js"))
    assert sum(len(gzip.compress(script.read_bytes())) for script in scripts) < 40_000
    words = (DOCS.parent / "src/byhand/web/live/words.js").read_text(encoding="utf-8")
    english, chinese = re.search(r"  en: \{\n(.*?)\n  \},\n  zh: \{\n(.*?)\n  \},\n", words, re.DOTALL).groups()
    keys = [re.findall(r"(?:^    |(?<=[\"`], ))(\w+): (?:\"|\()", part, re.MULTILINE) for part in (english, chinese)]
    assert keys[0] == keys[1]
    used = {key for script in scripts for key in re.findall(r'\bsay\("(\w+)"', script.read_text(encoding="utf-8"))}
    assert len(used) > 10
    assert used <= set(keys[0])


def test_a_cell_says_a_small_number_as_the_tables_do():
    text = (DOCS / "guides" / "backward-by-hand.md").read_text(encoding="utf-8")
    marked = hooked(text.replace("```math\n", "```{math}\n"), "en")
    shown = html.unescape("".join(re.findall(r'data-show="([^"]*)"', marked)))
    assert "4.53945e−5" in shown
    assert not re.search(r'"[^"\\]*10\^', shown)
