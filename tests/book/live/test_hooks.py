"""The pages' matrices and rows are found in the lessons' graphs."""

import html
import json
import re
from pathlib import Path

import pytest

from byhand.book.live.pages import BLOCK, MATRIX, hooked

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "<!-- generated: lesson " in p.read_text(encoding="utf-8"))


BEGIN, END = r"\begin{bmatrix}", r"\end{bmatrix}"
IDS = r"\d( & \d)*"  # bytes, tokens and targets: the step that cuts them is no pass


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_matrix_of_a_lesson_is_its_graphs(page):
    chinese = page.name.endswith(".zh-CN.md")
    text = page.read_text(encoding="utf-8").replace("```math\n", "```{math}\n")
    marked = hooked(text, "zh" if chinese else "en")
    shown = re.findall(r'data-show="([^"]*)"', marked)
    lines = [json.loads(html.unescape(show)) for show in shown]
    grids = [piece for block in lines for line in block for piece in line if isinstance(piece, list)]
    matrices = [grid for grid in grids if len(grid[3]) > 1 or grid[2] > 1]
    assert matrices or page.name.startswith("bpe")
    left = MATRIX.findall(re.sub(r'<div class="live-math".*?</div>', "", marked, flags=re.DOTALL))
    left += [piece for block in lines for line in block for piece in line if MATRIX.search(str(piece))]
    lessons = {block[3] for block in BLOCK.finditer(text) if block[2] == "lesson"}
    blocks = "".join(block[5] for block in BLOCK.finditer(text) if block[3] in lessons)
    assert [matrix for matrix in left if f"{BEGIN}{matrix}{END}" in blocks and not re.fullmatch(IDS, matrix)] == []
    data = re.findall(r'<script type="application/json" class="live-data">(.*?)</script>', marked)
    assert {json.loads(one)["lesson"] for one in data} == lessons
    labels = {number[0] for one in data for step in json.loads(one)["steps"] for number in step["numbers"]}
    rows = set(re.findall(r"^\| `([^`]+)` \| `[^`]+` \| `[^`]+` \|$", blocks, re.MULTILINE))
    assert rows
    assert rows <= labels


def test_a_page_without_a_lesson_stays_as_it_is():
    text = (DOCS / "guides" / "glossary.md").read_text(encoding="utf-8")
    assert hooked(text, "en") == text
