"""Terms of the glossary are defined where a section first uses them, and the other language keeps the section."""

import re

import pytest

from browser.conftest import DOCS
from browser.test_live_pages import LANGUAGES
from browser.webdriver import ESCAPE

pytestmark = pytest.mark.browser
PAGE = "equations/causal_softmax.html"
MARKED = """
    return [...document.querySelectorAll(".term")].map((term) => [
        term.textContent, document.getElementById(term.getAttribute("aria-describedby"))?.textContent,
        term.closest("section")?.id, !!term.closest("h1, h2, h3, a, code, pre, table, math"),
    ]);
"""
TIP = "const tip = document.querySelector('.term-tip'); return tip.hidden ? '' : tip.textContent"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_section_s_first_use_of_a_term_has_the_glossary_s_definition(browser, site, lang):
    browser.open(site / lang / PAGE)
    found = browser.run(MARKED)
    glossary = (DOCS / f"guides/glossary{'.zh-CN' * (lang != 'en')}.md").read_text(encoding="utf-8")
    assert len(found) > 3
    assert len({(said, section) for _, said, section, _ in found}) == len(found)
    for term, said, _, is_elsewhere in found:
        assert not is_elsewhere
        assert re.search(
            rf"^\| {re.escape(term[:-1])}.* \| {re.escape(said)} \|", glossary, re.MULTILINE | re.IGNORECASE
        )


@pytest.mark.parametrize(("lang", "width"), [("en", 1280), ("zh-CN", 360)])
def test_focus_and_touch_show_it_inside_the_window_without_moving_the_text(browser, site, lang, width):
    browser.look(width)
    browser.open(site / lang / PAGE)
    height = "return document.querySelector('article').scrollHeight"
    before = browser.run(height)
    assert browser.run(TIP) == ""
    for how in ("focus", "click"):
        browser.run(f"const t = [...document.querySelectorAll('.term')].at(-1); t.scrollIntoView(); t.{how}()")
        browser.later("requestAnimationFrame(() => requestAnimationFrame(done))")
        assert browser.run(TIP) == browser.run(MARKED)[-1][1]
        left, right = browser.run(
            "const b = document.querySelector('.term-tip').getBoundingClientRect(); return [b.left, b.right]"
        )
        assert 0 <= left < right <= width
        browser.type(ESCAPE)
        assert browser.run(TIP) == ""
    assert browser.run(height) == before
    assert browser.complaints() == []


@pytest.mark.parametrize("anchor", ["derivative", "worked-causal_softmax-1"])
def test_the_other_language_opens_at_the_same_section(browser, site, anchor):
    browser.open(f"{(site / 'en' / PAGE).as_uri()}#{anchor}")
    browser.run("document.querySelector('article a[href*=\"zh-CN\"]').click()")
    browser.later("addEventListener('load', done); if (document.readyState === 'complete') done()")
    there = "document.getElementById(decodeURIComponent(location.hash.slice(1)))"
    heading = browser.run(f"return {there}.closest('section').querySelector('h2').textContent")
    assert heading.startswith("导数" if anchor == "derivative" else "手算")
    assert anchor == "derivative" or browser.run("return location.hash") == f"#{anchor}"
