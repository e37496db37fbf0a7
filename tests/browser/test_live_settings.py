"""Sliders and switches in a real browser: at each position the page has the core's numbers; keys move them too."""

import math

import pytest

from browser.test_live_pages import LANGUAGES, focus, numbers, read, same, shown
from browser.webdriver import ENTER, RIGHT
from live.working import graph

pytestmark = pytest.mark.browser
TRAINING, CORE = "guides/training-and-generation", "guides/update"
MOVED = """
    const [name, which, value] = arguments;
    const own = live.graphs.find((graph) => graph.name === name);
    const section = live.sections.find((one) => one.graph === own && one.dataset.step === "0");
    const input = section.querySelectorAll(".live-slider")[which];
    if (input.type === "checkbox") input.click();
    else {
      input.value = String(value);
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }
    const found = Array.from(own.values);
    live.restore();
    return [input.min, input.max, input.step, found];
"""


@pytest.mark.parametrize(
    ("page", "lesson", "which", "setting", "positions"),
    [
        (TRAINING, "sampling", 0, "tau", (0.1, 0.2, 1, 3.7, 5)),
        (TRAINING, "sampling", 1, "k", (1, 2, 3, 4)),
        (TRAINING, "sampling", 2, "u", (0, 0.5, 0.73, 0.74, 0.99)),
        (CORE, "matrix-core", 0, "rate", (0, 0.01, 0.35, 1)),
        (CORE, "matrix-core", 1, "causal", (1,)),
        ("guides/learn-by-hand", "paper-gpt", 1, "causal", (0,)),
    ],
)
def test_at_each_position_it_computes_what_python_does(browser, site, page, lesson, which, setting, positions):
    read(browser, site, page)
    before = browser.run(f"return Array.from(live.graphs.find((g) => g.name === '{lesson}').values)")
    for at in positions:
        low, high, step, found = browser.run(MOVED, lesson, which, at)
        expected = graph(lesson, changes={setting: at}).numbers
        given = slice(0, len(expected) - (setting == "causal"))  # the last is the switch itself
        same(f"{lesson} {setting}={at}", numbers(found[given]), expected[given])
        assert setting == "causal" or float(low) <= at <= float(high)
        assert setting == "causal" or math.isclose(at / float(step), round(at / float(step)))
    after = browser.run(f"return Array.from(live.graphs.find((g) => g.name === '{lesson}').values)")
    assert after == before
    assert browser.complaints() == []


def test_other_logits_are_kept_by_their_own_rank(browser, site):
    read(browser, site, TRAINING)
    focus(browser, ".live-given td")
    browser.type(ENTER, "-3", ENTER)
    expected = graph("sampling", changes={"z": [-3, 1, 0, -1]})
    same("sampling", numbers(browser.run("return Array.from(live.graphs[0].values)")), expected.numbers)
    focus(browser, '.live-step[data-step="4"] td')
    text = shown(browser, ".live-text")[0]
    assert text.startswith("z''[0] = if 4 ≤ 2 then −3, else −∞ = −∞")
    assert "rank = 1 + [1 > −3] + [0 > −3] + [−1 > −3] = 4" in text


@pytest.mark.parametrize(("lang", "label"), [("en", "temperature τ"), ("zh-CN", "温度 τ")])
def test_a_slider_is_moved_by_keys_and_says_its_value(browser, site, lang, label):
    read(browser, site, TRAINING, lang, 360)
    slider = '.live-step[data-step="2"] .live-slider'
    focus(browser, slider)
    browser.type(RIGHT)
    said = "const e = document.querySelector(arguments[0]); return [e.ariaLabel, e.ariaValueText, e.value]"
    assert browser.run(said, slider) == [label, "2.1", "2.1"]
    assert shown(browser, '.live-step[data-step="2"] output') == ["2.1"]
    assert shown(browser, ".live-given.live-alone td")[0] == "2.1"
    assert browser.run("return document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("text", ["0", "-1", "1e999", "NaN", "", "5.01", "<b>", "∞", "9" * 200])
def test_what_is_no_temperature_is_refused(browser, site, text):
    read(browser, site, TRAINING)
    focus(browser, ".live-given.live-alone td")
    browser.type(ENTER)
    browser.run("document.activeElement.value = arguments[0]", text)
    browser.type(ENTER)
    assert browser.run("return document.activeElement.ariaInvalid") == "true"
    assert shown(browser, ".live-news") == [""]
    same("sampling", numbers(browser.run("return Array.from(live.graphs[0].values)")), graph("sampling").numbers)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_mask_is_a_switch(browser, site, lang):
    read(browser, site, CORE, lang)
    focus(browser, '.live-step[data-lesson="matrix-core"][data-step="5"] [role=switch]')
    browser.type(" ")
    weights = '.live-step[data-lesson="matrix-core"][data-step="5"]'
    assert shown(browser, f"{weights} table.live-made td")[:2] == ["1", "0"]
    assert shown(browser, f"{weights} tr.live-row td:nth-child(3)")[:2] == ["1", "0"]
    news = browser.run("return document.querySelector('.live-news').textContent")
    assert "L 1.08308 → 0.693147" in news
    assert "× " not in news  # no gradient foretells a mask
    focus(browser, '.live-step[data-lesson="matrix-core"][data-step="0"] [role=switch]')
    browser.type(" ")
    assert shown(browser, "td.live-changed") == []


def test_a_step_is_framed_in_the_pictures(browser, site):
    read(browser, site)
    spots = """
        return [...document.querySelectorAll(arguments[0])].map((spot) => {
          const own = spot.getBoundingClientRect(), whole = spot.parentElement.getBoundingClientRect();
          return [own.left >= whole.left, own.right <= whole.right, own.top >= whole.top, own.bottom <= whole.bottom];
        });
    """
    assert all(map(all, browser.run(spots, ".live-spot")))
    browser.run("document.querySelectorAll('.live-map button')[3].click()")
    assert len(browser.run(spots, ".live-made-here")) == 1  # S
    assert len(browser.run(spots, ".live-read-here")) == 2  # Q and K
    browser.run("document.querySelector('.live-spot.live-read-here').click()")
    assert shown(browser, ".live-map [aria-current=step]") == ["Q"]


def test_changed_numbers_are_not_printed_beside_unchanged_formulas(browser, site):
    read(browser, site, CORE)
    rows = "[...document.querySelectorAll('tr.live-row')].map((row) => row.innerText)"
    before = browser.run(f"return {rows}")
    browser.run("document.querySelector('[role=switch]').click()")
    assert browser.run(f"return {rows}") != before
    printed = (
        f"dispatchEvent(new Event('beforeprint')); const found = {rows}; dispatchEvent(new Event('afterprint'));"
    )
    assert browser.run(f"{printed} return found") == before
    assert browser.run(f"return {rows}") != before


@pytest.mark.parametrize("width", [360, 1280])
def test_short_steps_are_walked_one_by_one(browser, site, width):
    read(browser, site, TRAINING, width=width, prefers_reduced_motion="reduce")
    scrolled = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))"
    for number in range(1, 7):
        browser.run("document.querySelectorAll('.live-tools > button')[1].click()")
        browser.later(scrolled)  # a step is also current because it is scrolled to
        at = (
            "return [...document.querySelectorAll('.live-map button')].findIndex((b) => b.ariaCurrent === 'step') + 1"
        )
        assert browser.run(at) == number


def test_the_loss_after_the_update_follows_the_rate(browser, site):
    read(browser, site, CORE)
    expected = graph("matrix-core", changes={"rate": 1})
    later = next(array for array in expected.arrays if array.name == "after.loss")
    move = "const e = document.querySelector('.live-step[data-step=\"0\"] .live-slider'); e.value = 1;"
    browser.run(move + "e.dispatchEvent(new Event('input', { bubbles: true }))")
    printed = f"{float(later.numbers[0]):.6g}"
    assert shown(browser, '.live-step[data-lesson="matrix-core"][data-step="30"] td') == [printed]
    assert f"L' 1.03092 → {printed}" in shown(browser, ".live-news")[0]


def test_a_logit_that_is_kept_now_is_shown(browser, site):
    read(browser, site, TRAINING)
    browser.run("""
        const slider = document.querySelectorAll('.live-step[data-step="0"] .live-slider')[1];
        slider.value = 3;
        slider.dispatchEvent(new Event('input', { bubbles: true }));
    """)
    assert shown(browser, '.live-step[data-step="4"] td') == ["2", "1", "0", "−∞"]


def test_the_temperature_reaches_the_draw(browser, site):
    read(browser, site, TRAINING)
    expected = graph("sampling", changes={"tau": 0.5}).numbers
    browser.run("""
        const slider = document.querySelectorAll('.live-step[data-step="0"] .live-slider')[0];
        slider.value = 0.5;
        slider.dispatchEvent(new Event('input', { bubbles: true }));
    """)
    drawn = '.live-step[data-lesson="sampling"][data-step="9"] tr.live-row:last-child td:nth-child(3)'
    assert shown(browser, drawn) == [f"{expected[-1]:g}"] == ["0"]  # and 1 at the lesson's temperature
    probabilities = '.live-step[data-lesson="sampling"][data-step="8"] td'
    assert shown(browser, probabilities)[:2] == ["0.880797", "0.119203"]
