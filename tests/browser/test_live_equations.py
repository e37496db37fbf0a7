"""The equations' pages in a real browser: what they show is what Python computes, also from other numbers."""

import math

import pytest

from browser.conftest import EQUATIONS
from browser.test_live_pages import other, read
from live.working import graph

pytestmark = pytest.mark.browser
OWN = """
    const graph = live.graphs.find((g) => g.name === arguments[0]);
    const own = live.views.filter((v) => v.graph === graph);
"""
SHOWN = """
    const cells = own.filter((v) => v.element.tagName === "TD");
    return cells.map((v) => [v.cell, String(live.read(v.element.textContent))]);
"""
CHANGED = """
    for (const [cell, value] of arguments[1]) live.change(graph, cell, value);
"""


@pytest.mark.parametrize("page", EQUATIONS, ids=str)
def test_it_shows_what_python_computes(browser, site, page):
    read(browser, site, page)
    name = f"worked-{page.name}"
    own, moved = graph(name), graph(name, other)
    free = {a.first + k for a in own.arrays if a.is_free for k in range(a.data.size)}
    changed = [[cell, moved.numbers[cell]] for cell in sorted(free)]
    before = browser.run(OWN + SHOWN, name)
    after = browser.run(OWN + CHANGED + SHOWN, name, changed)
    made = {cell for cell, program in enumerate(own.programs) if program}
    assert made & {cell for cell, _ in before}
    for shown, expected in ((before, own.numbers), (after, moved.numbers if free else own.numbers)):
        for cell, text in shown:
            value = float(text.replace("Infinity", "inf"))
            assert math.isclose(value, expected[cell], rel_tol=1e-5, abs_tol=1e-9), (cell, text)
    assert browser.complaints() == []


def test_a_temperature_reaches_the_gradient_too(browser, site):
    read(browser, site, "equations/temperature")
    moved = "e.dispatchEvent(new Event('input', { bubbles: true }))"
    browser.run(f"const e = document.querySelector('.live-slider'); e.value = 4; {moved}")
    name = "worked-temperature"
    texts = [text for _, text in browser.run(OWN + SHOWN, name)]
    assert texts == ["2", "1", "0", "-1", "0.5", "0.25", "0", "-0.25", "2", "4", "6", "8", "0.5", "1", "1.5", "2"]


@pytest.mark.parametrize("page", ["equations/softmax", "equations/causal_self_attention", "equations/rotary"])
@pytest.mark.parametrize("lang", ["en", "zh-CN"])
def test_it_fits_on_a_telephone(browser, site, page, lang):
    read(browser, site, page, lang, 360, prefers_color_scheme="dark")
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    assert browser.run("return document.querySelectorAll('.live-grid').length") >= 4
