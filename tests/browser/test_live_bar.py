"""The bar in a real browser: the way to the next step and to what a number is made from; small on telephones."""

import pytest

from browser.test_live_pages import SCORES, focus, read, shown

pytestmark = pytest.mark.browser
CURRENT = "return document.querySelector('.live-map [aria-current=step]')?.textContent"
OUTPUT = '.live-step[data-lesson="matrix-core"][data-step="6"] table.live-made td'


def test_the_next_step_is_that_below_the_window_s_line(browser, site):
    read(browser, site, prefers_reduced_motion="reduce")
    settled = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60)))"

    def stand_above(step, share):
        browser.run(
            """
            const e = document.querySelector(`.live-step[data-lesson="matrix-core"][data-step="${arguments[0]}"]`);
            const top = e.getBoundingClientRect().top + scrollY - arguments[1] * innerHeight;
            scrollTo({ top, behavior: 'instant' });
            """,
            step,
            share,
        )
        browser.later(settled)

    def walk(which):
        browser.run("document.querySelectorAll('.live-tools > button')[arguments[0]].click()", which)
        browser.later(settled)
        return browser.run(CURRENT)

    stand_above(5, 0.3)
    assert walk(1) == "P"
    assert walk(1) == "O"
    stand_above(6, 0.2)
    assert walk(0) == "P"
    assert walk(0) == "S"
    browser.run("scrollTo({ top: 0, behavior: 'instant' })")
    browser.later(settled)
    assert walk(1) == "Q"


def test_what_a_number_is_made_from_can_be_gone_to(browser, site):
    read(browser, site, prefers_reduced_motion="reduce")
    focus(browser, OUTPUT)
    assert shown(browser, ".live-text") == ["O[0,0] = 0.330238"]
    assert "↑ V" in shown(browser, ".live-ways button")
    browser.run("document.querySelector('.live-ways button').click()")
    inside = """
        const own = document.activeElement.getBoundingClientRect();
        return [document.activeElement.classList.contains("live-source"), own.top >= 0 && own.bottom <= innerHeight];
    """
    assert browser.run(inside) == [True, True]
    assert "↓ O" in shown(browser, ".live-ways button")  # and back
    assert shown(browser, ".live-text") == ["O[0,0] = 0.330238"]


@pytest.mark.parametrize(("lang", "word"), [("en", "Tap"), ("zh-CN", "点")])
def test_on_a_telephone_the_bar_is_low_and_speaks_of_tapping(browser, site, lang, word):
    browser.devtools("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        read(browser, site, lang=lang, width=360)
        focus(browser, f"{SCORES} td")
        share = browser.run("return document.querySelector('.live-bar').offsetHeight / innerHeight")
        assert share < 0.16
        read(browser, site, lang=lang, width=360)
        assert shown(browser, ".live-text")[0].startswith(word)
    finally:
        browser.devtools("Emulation.setTouchEmulationEnabled", enabled=False)


@pytest.mark.parametrize("page", ["guides/update", "guides/learn-by-hand", "equations/rotary"])
def test_every_cell_has_a_name(browser, site, page):
    read(browser, site, page)
    assert browser.run("return live.views.length") > 20
    nameless = "return live.views.filter((v) => v.cell >= 0 && /^\\[|^$/.test(v.graph.label(v.cell))).length"
    assert browser.run(nameless) == 0


def test_a_cell_kept_on_the_way_and_a_row_s_loss_are_called_as_on_the_page(browser, site):
    read(browser, site)
    focus(browser, '.live-step[data-lesson="matrix-core"][data-step="5"] table.live-read td')
    assert shown(browser, ".live-text")[0].startswith("exp(S − m)[0,0] = exp(0 − 0.707107) = 0.493069")
    focus(browser, '.live-step[data-lesson="matrix-core"][data-step="8"] tr.live-row:last-child')
    assert "\nloss[0] = " in shown(browser, ".live-text")[0]
