"""Pages with lessons in a real browser: they compute the core's numbers and answer to keys, in both languages."""

import json
import math

import numpy as np
import pytest

from browser.conftest import PAGES
from browser.webdriver import DOWN, ENTER, RIGHT
from byhand.book.numbers import closed_form
from live.working import graph

pytestmark = pytest.mark.browser
LANGUAGES = ("en", "zh-CN")
WORK = "return live.graphs.map(g => [g.name, Array.from(g.work(Float64Array.from(g.lesson))), Array.from(g.lesson)])"
EACH = pytest.mark.parametrize(("page", "lang"), [(page, lang) for page in PAGES for lang in LANGUAGES], ids=str)


def same(name, computed, expected):
    wrong = [
        cell
        for cell, (a, b) in enumerate(zip(computed, expected, strict=True))
        if not math.isclose(float(a), float(b), rel_tol=1e-12, abs_tol=1e-15)
    ]
    assert not wrong, (name, wrong[:5])


def read(browser, site, page="guides/update", lang="en", width=1280, **media):
    browser.look(width, **media)
    browser.open(site / lang / f"{page}.html")
    if browser.run("return live.blanks.on"):  # as the test before left it
        browser.run("localStorage.clear()")
        browser.open(site / lang / f"{page}.html")
    browser.run("document.querySelector('.live-step')?.closest('details')?.setAttribute('open', '')")


def numbers(values):
    """JSON has no infinities: the driver returns them as null."""
    return [-math.inf if x is None else x for x in values]


@EACH
def test_it_computes_the_lessons_numbers(browser, site, page, lang):
    read(browser, site, page, lang)
    found = browser.run(WORK)
    assert found
    for name, computed, lesson in found:
        expected = graph(name).numbers
        same(name, numbers(lesson), expected)
        same(name, numbers(computed), expected)
    assert browser.complaints() == []


def other(nested):
    exact = closed_form.array(nested)
    return exact + 0.01 * np.random.default_rng(list(str(nested).encode())).standard_normal(exact.shape)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_with_other_given_numbers_it_computes_what_python_does(browser, site, page):
    read(browser, site, page)
    for name in browser.run("return live.graphs.map(g => g.name)"):
        expected = graph(name, other)
        given = {cell: x for cell, x in enumerate(expected.numbers) if expected.programs[cell] is None}
        script = """
            const graph = live.graphs.find((g) => g.name === arguments[0]);
            for (const [cell, value] of arguments[1]) graph.values[cell] = value;
            return Array.from(graph.work());
        """
        changed = [[cell, x] for cell, x in given.items() if math.isfinite(x)]
        same(name, numbers(browser.run(script, name, changed)), expected.numbers)


def focus(browser, selector):
    browser.run(
        "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'}); e.focus();", selector
    )


CORE = '.live-step[data-lesson="matrix-core"]'
GIVEN = f'{CORE}[data-step="0"] table[aria-label="W_Q"] td'
SCORES, WEIGHTS = (f'{CORE}[data-step="{step}"] table.live-made' for step in (4, 5))


def shown(browser, selector):
    return browser.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)


def test_pointing_at_a_number_shows_its_arithmetic_and_sources(browser, site):
    read(browser, site)
    focus(browser, f"{SCORES} td")
    browser.type(RIGHT)
    assert shown(browser, ".live-text") == ["S[0,1] = 1 / √2 = 0.707107"]
    for step in (1, 2):  # a row of Q, one of K, each where it was made
        assert shown(browser, f'{CORE}[data-step="{step}"] td.live-source') == ["1", "0"]
    browser.type(DOWN)
    assert shown(browser, ".live-text") == ["S[1,1] = 0 / √2 = 0"]
    focus(browser, f'{CORE}[data-step="4"] tr.live-row')
    assert shown(browser, ".live-text") == ["S[0,0] = 0 / √2 = 0"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_number_is_changed_by_keys_alone(browser, site, lang):
    read(browser, site, lang=lang)
    focus(browser, GIVEN)
    browser.type(ENTER)
    browser.type("1,3", ENTER)

    def moved(nested):
        return closed_form.array([[1.3, 0], [0, 1]] if nested == [[1, 0], [0, 1]] else nested)

    expected = graph("matrix-core", moved)
    same("matrix-core", browser.run("return Array.from(live.graphs[0].values)"), expected.numbers)
    loss = next(a for a in expected.arrays if a.name == "loss").numbers[0]
    (news,) = shown(browser, ".live-news")
    assert f"{loss:.6g}" in news
    assert "1.08308 + 0.10345 × 0.3 = 1.11412" in news  # the loss, and its gradient times the change
    assert shown(browser, f"{GIVEN}.live-changed") == ["1.3"]
    assert browser.run("return document.activeElement.tagName") == "TD"
    browser.type("x", ENTER, "2", "x", ENTER)
    assert browser.run("return document.activeElement.getAttribute('aria-invalid')") == "true"
    browser.run("[...document.querySelectorAll('.live-tools > button')].at(-1).click()")
    assert shown(browser, "td.live-changed") == []
    same("matrix-core", browser.run("return Array.from(live.graphs[0].values)"), graph("matrix-core").numbers)
    assert browser.complaints() == []


def test_where_the_core_has_nan_so_has_the_page(browser, site):
    """Without ε, AdamW divides 0 by 0 for the weights of a pixel that is dark in every picture."""
    read(browser, site, "guides/classifier")
    pictures = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]

    def darkened(nested):
        return closed_form.array([[0, *row[1:]] for row in nested] if nested == pictures else nested)

    expected = graph("classifier", darkened)
    first = next(array.first for array in expected.arrays if array.name == "X")
    script = """
        for (const cell of arguments[0]) live.change(live.graphs[0], cell, 0);
        return Array.from(live.graphs[0].values, String);
    """
    found = [float(x) for x in browser.run(script, [first, first + 8])]
    assert any(map(math.isnan, expected.numbers))
    assert found == pytest.approx(expected.numbers, rel=1e-12, abs=1e-15, nan_ok=True)
    assert "NaN" in shown(browser, "td.live-changed")


def test_the_steps_are_walked(browser, site):
    read(browser, site)
    for _ in range(4):
        browser.run("document.querySelectorAll('.live-tools > button')[1].click()")
    assert shown(browser, ".live-map [aria-current=step]") == ["S"]
    assert shown(browser, ".live-map .live-from") == ["Q", "K"]
    assert "4" in shown(browser, ".live-text")[0]
    browser.run("document.querySelectorAll('.live-tools > button')[0].click()")
    assert shown(browser, ".live-map [aria-current=step]") == ["V"]


@EACH
def test_a_telephone_shows_it_without_scrolling_sideways(browser, site, page, lang):
    read(browser, site, page, lang, 360, prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    bar = browser.run("return document.querySelector('.live-bar')?.getBoundingClientRect().toJSON() ?? null")
    if bar:
        assert bar["bottom"] <= 801
        assert bar["height"] < 200


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_print_has_the_pages_own_formulas(browser, site, page):
    read(browser, site, page)
    browser.devtools("Emulation.setEmulatedMedia", media="print", features=[])
    visible = "return [...document.querySelectorAll(arguments[0])].some((e) => e.getClientRects().length)"
    assert not browser.run(visible, ".live-lines, .live-bar, .skip-to-content")
    assert page.name == "bpe" or browser.run(visible, ".live-math > :not(.live-lines)")  # bpe has words, no matrices
    assert browser.run(visible, "details:not([open]) > :not(summary)")
    tallest = "return Math.max(0, ...[...document.querySelectorAll('div.math')].map((e) => e.offsetHeight))"
    assert browser.run(tallest) < 900  # a sheet
    browser.devtools("Emulation.setEmulatedMedia", media="", features=[])


@pytest.mark.parametrize("damage", ['"programs":', 'data-spots="[', 'data-step="5"', '"arrays":', '"lesson":'])
def test_with_damaged_data_the_page_is_whole_and_still(browser, site, damage):
    page = site / "en/guides/update.html"
    whole = page.read_text(encoding="utf-8")
    assert damage in whole
    page.write_text(whole.replace(damage, damage[:-1] + "0" + damage[-1]), encoding="utf-8")
    try:
        read(browser, site)
    finally:
        page.write_text(whole, encoding="utf-8")
    visible = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.getClientRects().length).length"
    assert browser.run(visible, ".live-math > :not(.live-lines)") > 40
    assert browser.run(visible, ".live-lines, .live-bar, .live-setting, .live-spot, [tabindex='0'].live-row") == 0
    assert browser.complaints()


def test_the_matrices_of_a_screen_reader_have_names(browser, site):
    read(browser, site)
    said = "return [...document.querySelectorAll('[role=grid]')].map((e) => e.ariaLabel ?? "
    names = browser.run(said + "document.getElementById(e.getAttribute('aria-labelledby'))?.textContent ?? '')")
    assert all(names)
    assert not {"read", "made"} & set(names)


def test_a_number_with_the_focus_is_not_below_the_bar(browser, site):
    read(browser, site, "guides/training-and-generation", width=360, prefers_reduced_motion="reduce")
    covered = """
        const own = document.activeElement.getBoundingClientRect();
        done([own.bottom, document.querySelector(".live-bar").getBoundingClientRect().top]);
    """
    for step in range(1, 6):
        cell = f"document.querySelector('.live-step[data-step=\"{step}\"] table.live-made td')"
        browser.run(f"const e = {cell}; e.scrollIntoView({{block: 'end'}}); e.focus()")
        bottom, top = browser.later(f"setTimeout(() => {{ {covered} }}, 100);")
        assert bottom <= top


def test_without_scripts_the_page_is_whole(site):
    text = (site / "en/guides/update.html").read_text(encoding="utf-8")
    assert "0.707107" in text.partition('class="live-data"')[0]
    data = text.partition('class="live-data">')[2].partition("</script>")[0]
    assert json.loads(data)["lesson"] == "matrix-core"


def test_a_list_of_changes_gives_the_losses_before_and_after(browser, site):
    """So an exercise may set them."""
    read(browser, site)
    script = """
        const graph = live.graphs[0], cell = graph.arrays.find(({ name }) => name === "W_Q").first;
        return [1e-4, 0].map((by) => live.changeAll(graph, [[cell, graph.lesson[cell] + by]])[0]);"""
    moved, back = browser.run(script)
    assert moved["before"] == back["before"] == back["after"] == back["foretold"]
    assert moved["after"] != moved["before"]
    assert moved["foretold"] == pytest.approx(moved["after"], abs=1e-7)
