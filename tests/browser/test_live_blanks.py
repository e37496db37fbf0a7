"""Blanks in a real browser: results are hidden wherever they stand, and the page says which mistake it was."""

import pytest

from browser.test_live_pages import LANGUAGES, SCORES, WEIGHTS, read, shown
from browser.webdriver import ENTER
from live.working import graph

pytestmark = pytest.mark.browser
STEP = '.live-step[data-lesson="matrix-core"][data-step="{}"]'


def turn(browser):
    browser.run("document.querySelector('.live-tools input[type=checkbox]').click()")


def fill(browser, selector, text, which=0):
    """Write a number into a blank, and return what is said of it."""
    browser.run(
        "const e = document.querySelectorAll(arguments[0])[arguments[1]]; e.focus(); e.select()",
        f"{selector} input",
        which,
    )
    browser.type(text, ENTER)
    return shown(browser, ".live-verdict")[0]


@pytest.mark.parametrize(("lang", "slip", "wrong"), [("en", "forgot √D", "✗"), ("zh-CN", "√D", "✗")])
def test_a_blank_names_the_mistake(browser, site, lang, slip, wrong):
    read(browser, site, lang=lang)
    turn(browser)
    assert shown(browser, f"{SCORES} td") == ["", "", "", ""]
    browser.run(f"document.querySelectorAll('{SCORES} input')[1].focus()")
    browser.type("1", ENTER)
    (said,) = shown(browser, ".live-verdict")
    assert said.startswith(wrong)
    assert slip in said
    browser.run(f"document.querySelectorAll('{SCORES} input')[1].select()")
    browser.type("√2/2", ENTER)
    assert shown(browser, ".live-verdict")[0].startswith("✓")
    assert shown(browser, f"{SCORES} td")[1] == "0.707107"
    turn(browser)
    assert shown(browser, f"{SCORES} td") == ["0", "0.707107", "0.707107", "0"]


def test_right_arithmetic_on_an_earlier_slip_is_right(browser, site):
    read(browser, site)
    turn(browser)
    for selector, text in ((SCORES, "1"), (WEIGHTS, "0.731")):  # without the root: e / (1 + e)
        browser.run(f"document.querySelectorAll('{selector} input')[1].focus()")
        browser.type(text, ENTER)
    assert shown(browser, ".live-verdict")[0].startswith("✓ P[0,1]")


@pytest.mark.parametrize(
    ("step", "which", "text", "said"),
    [
        (8, "tr.live-row", "1.56256", "logarithm to base 2"),  # of loss[0]
        (8, "tr.live-row", "0.33855", "stopped at the probability"),
        (17, "td", "-0.10345", "forgot the learning rate"),  # ΔW_Q[0,0] is −0.010345
        (18, "td", "0.89655", "forgot the learning rate"),  # W_Q'[0,0] is 0.989655
        (18, "td", "1.010345", "added rate times gradient"),
    ],
)
def test_an_update_and_a_row_s_loss_have_their_mistakes(browser, site, step, which, text, said):
    read(browser, site)
    turn(browser)
    assert said in fill(browser, f"{STEP.format(step)} {which}", text)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_is_said_of_a_number_stays_while_others_are_pointed_at(browser, site, lang):
    read(browser, site, lang=lang)
    turn(browser)
    said = fill(browser, SCORES, "0.707", 1)
    assert said.startswith("✓ S[0,1]")
    browser.run(
        "document.querySelector('.live-given td').dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))"
    )
    assert shown(browser, ".live-text")[0].startswith("X[0,0] = 1")
    assert shown(browser, ".live-verdict") == [said]


def test_blanks_are_there_again_when_the_page_is_loaded_again(browser, site):
    read(browser, site)
    turn(browser)
    fill(browser, SCORES, "1", 1)  # wrong, and carried on
    fill(browser, WEIGHTS, "0.731", 1)
    fill(browser, SCORES, "0", 0)
    browser.open(site / "en/guides/update.html")
    cells = (
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent || e.firstElementChild.value)"
    )
    assert browser.run(cells, f"{SCORES} td") == ["0", "1", "", ""]
    assert browser.run(cells, f"{WEIGHTS} td")[1] == "0.669762"
    assert shown(browser, ".live-news")[0].startswith("2 of ")
    assert browser.run("return document.querySelector('.live-step[data-step=\"0\"] .live-slider').disabled")
    turn(browser)
    browser.open(site / "en/guides/update.html")
    assert not browser.run("return live.blanks.on")


def test_a_hidden_result_is_to_be_seen_nowhere(browser, site):
    read(browser, site)
    turn(browser)
    results = {a.first + k for a in graph("matrix-core").arrays if a.programs for k in range(a.data.size)}
    visible = """
        return live.views.filter((view) => view.graph.name === "matrix-core" && view.element.tagName === "TD")
          .filter(({ element }) => element.checkVisibility({ visibilityProperty: true }) && element.textContent)
          .map((view) => view.cell);
    """
    assert not results & set(browser.run(visible))
    covered = """
        return [...document.querySelectorAll(".live-covered")].map((spot) =>
          [spot.parentElement.querySelector("img").alt, getComputedStyle(spot).backgroundColor]);
    """
    found = browser.run(covered)
    assert len(found) > 10
    assert {alt for alt, _ in found} == {"This picture shows results that are hidden."}
    assert all("rgba" not in color for _, color in found)
    for text in "1001":  # Q, which is a matrix of one picture
        fill(browser, STEP.format(1), text)
    assert len(browser.run(covered)) == len(found) - 1
    turn(browser)
    assert browser.run(covered) == []


def test_the_first_page_takes_two_decimals_and_prints_them(browser, site):
    read(browser, site, "guides/matrix-core")
    step = '.live-step[data-lesson="two-tokens"][data-step="{}"]'
    turn(browser)
    assert fill(browser, f"{step.format(5)} table.live-made", "0.33").startswith("✓")
    assert fill(browser, f"{step.format(5)} table.live-made", "0.7", 0).startswith("✗")
    turn(browser)
    browser.run("live.change(live.graphs[0], live.graphs[0].arrays.find((a) => a.name === 'W_V').first, 2)")
    assert shown(browser, f"{step.format(6)} table.live-made td")[0] == "0.66"
    assert "L 1.08 → 0.88" in shown(browser, ".live-news")[0]


def test_results_in_the_text_are_hidden_until_they_are_found(browser, site):
    read(browser, site, "guides/learn-by-hand")
    hidden = ".live-told.live-hidden"
    turn(browser)
    assert "0.695" in shown(browser, hidden)
    assert {"−0.36", "1.07", "0.26976"} <= {*shown(browser, hidden)}
    weights = next(array for array in graph("paper-gpt").arrays if array.name == "attn.weights")
    browser.run(
        "live.views.find((view) => view.cell === arguments[0] && view.blank?.input).blank.input.focus()",
        weights.cell((*(0,) * (weights.data.ndim - 2), 2, 1)),
    )
    browser.type("0.695", ENTER)
    assert "0.695" not in shown(browser, hidden)
    assert "0.26976" in shown(browser, hidden)
    turn(browser)
    assert shown(browser, hidden) == []
